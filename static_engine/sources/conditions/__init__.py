"""Conditions of a query, put into the language of what holds the rows."""
