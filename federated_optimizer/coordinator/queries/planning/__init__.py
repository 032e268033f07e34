"""Plans of queries: over what runs, and made again when that has changed."""
