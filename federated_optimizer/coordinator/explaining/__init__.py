"""EXPLAIN, WHY, WHAT IF and CONFIDENCE, and the base rows they need."""
