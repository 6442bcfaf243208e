"""The rules of turnkeeper: pure state machines, their vocabulary and their tables. No clock, no thread, no I/O."""
