"""Parsers of statements, by their first word."""
