"""GROUP BY: groups, their accumulators, aggregates by name."""
