"""Scalar functions: their table, and what they compute for one row."""
