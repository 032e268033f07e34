"""Operators on rows: selection, projection, sets, the first of an order; what every operator is."""
