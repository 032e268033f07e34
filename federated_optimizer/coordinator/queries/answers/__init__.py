"""Answers of runs as the coordinator keeps them, once for all queries that show them."""
