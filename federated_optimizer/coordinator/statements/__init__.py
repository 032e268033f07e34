"""Statements and scripts, carried out one after the other."""
