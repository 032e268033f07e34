"""Recursive views maintained under insertions and deletions, in one or several sites."""
