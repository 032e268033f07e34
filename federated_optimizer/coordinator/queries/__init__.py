"""Queries: planned, deployed, running, their results and who reads them."""
