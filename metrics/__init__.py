"""Prometheus instruments for the signals of the engine."""
