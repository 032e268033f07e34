"""What a name in a statement means: scopes, query levels, and clauses that are refused."""
