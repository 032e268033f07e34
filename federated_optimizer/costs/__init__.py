"""Costs: a price with its range (`cost`), and that of rows between sites (`shipments`)."""
