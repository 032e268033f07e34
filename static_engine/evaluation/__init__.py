"""Evaluation of plans over stored tables: executors, their start, results per version."""
