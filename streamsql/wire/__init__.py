"""What services send each other: topics, messages and their validating codec."""
