"""Chat platforms on a local port, as complete as the examples need them, with failures by script."""
