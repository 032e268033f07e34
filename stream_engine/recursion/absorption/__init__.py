"""Recursive views with annotated rows: one or several sites, deletions without recomputing."""
