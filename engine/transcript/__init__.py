"""The transcript library: receipts never enter the prompt."""
