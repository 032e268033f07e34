"""Facts agreed of packs of the simulated past: epoch, length of an order, shortest interval."""

PAST_EPOCH = 0
"""Of packs that say what was, not what came: lives of gateways have epochs from 1."""
HOUR = 3_600_000_000
MAX_HOURS = 24
"""Of one order."""
SHORTEST_EVERY = 60_000_000
"""Microseconds between two readings of a sensor: an hour of 50 sensors is a pack of 1.5 MB."""
