"""Rows, groups and sizes of tables in databases."""
