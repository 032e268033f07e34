"""Payloads and libraries of `benchmarks/mapping.py`."""
