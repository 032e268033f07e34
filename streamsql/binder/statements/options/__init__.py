"""Options of statements: of queries, sources and mappings."""
