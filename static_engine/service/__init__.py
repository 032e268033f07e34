"""The static engine on the broker: its loop, the fragments it has installed, what it reports."""
