"""Trying out a host's own gateway: a fake chat platform that fails as real ones do, and who judges what users saw."""
