"""The static engine: stored tables, answered by Spark (or in this process, without it)."""
