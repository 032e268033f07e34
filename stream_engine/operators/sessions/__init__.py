"""Sessions: rows of a key that follow one another within a gap."""
