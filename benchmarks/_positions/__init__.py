"""Recorded signal strengths for the benchmark of positions."""
