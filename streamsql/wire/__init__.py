"""Messages between services: topics, structures and their validating codec."""
