"""Orders of joins, and joins between gateways."""
