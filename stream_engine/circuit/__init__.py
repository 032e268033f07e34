"""Circuits: operators wired together, pushed one change at a time."""
