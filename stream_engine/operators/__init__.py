"""Incremental operators, one a file, in rooms: rows, joins, aggregates, sessions, windows."""
