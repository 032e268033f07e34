"""Subqueries to joins: correlation, quantifiers, single values."""
