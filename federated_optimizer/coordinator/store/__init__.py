"""The catalog in a database."""
