"""Values and columns of stored rows: matched, converted, hashed."""
