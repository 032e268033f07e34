"""Linear Road's continuous queries in CQL, and traffic for them."""
