"""Messages about stored tables: the lake, changes of rows, orders to refresh."""
