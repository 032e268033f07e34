"""Changes of stored tables: managed tables of the lake, and tables of databases."""
