"""The turn owner: pair, quote, record, and how a turn ends."""
