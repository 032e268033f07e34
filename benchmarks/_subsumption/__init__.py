"""Filters over small worlds, in which whatever follows can be counted."""
