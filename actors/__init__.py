"""The running system on pykka."""
