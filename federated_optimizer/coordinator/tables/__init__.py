"""Changes of stored tables, and which files of them may be read."""
