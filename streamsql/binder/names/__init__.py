"""Names in a statement: scopes, query levels, and clauses that are refused."""
