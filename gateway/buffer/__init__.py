"""Readings that the broker has not acknowledged yet, on disk."""
