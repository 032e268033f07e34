"""GROUP BY, aggregates, window functions, the select list and its order."""
