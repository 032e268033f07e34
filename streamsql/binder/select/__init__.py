"""A query block by its clauses, set operations, and recursive queries."""
