"""FROM: relations, table functions, join trees, streams of changes."""
