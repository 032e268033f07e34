"""Conditions of one predicate: terms, clauses, and what follows from them."""
