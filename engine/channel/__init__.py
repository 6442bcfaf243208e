"""The channel owner: order, retry, preview."""
