"""Scenarios, replay and a simulated platform; public, for hosts' own tests."""
