"""Processor time of sites, measured and estimated (`benchmarks/calibration.py`)."""
