"""Values, schemas and deltas: what rows are and how relations change."""
