"""Runs at the sites: who reads them, nodes without queries, and what they offer."""
