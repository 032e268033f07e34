"""What a building consists of."""
