"""Replays of recordings: CSV rows, SenML lines, K7 link traces."""
