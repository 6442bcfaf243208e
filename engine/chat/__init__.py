"""The chat owner: ledger, attribution, sameness, anchor, wakes, directory."""
