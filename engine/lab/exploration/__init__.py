"""What the explorer is made of: branches of a run, the moves that there are, and what users saw on each."""
