"""The stored tables as last read, and when each is read again."""
