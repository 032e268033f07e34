"""Whole statements: queries, definitions, changes, questions, and their warnings."""
