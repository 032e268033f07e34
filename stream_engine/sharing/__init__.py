"""Synopses that several operators keep together: one store of rows, a stub for each of them."""
