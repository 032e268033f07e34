"""What travels between the sites of a query, and how it is put together again."""
