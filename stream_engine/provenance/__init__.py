"""Provenance of recursive views: which base rows, in which combinations, hold a row up."""
