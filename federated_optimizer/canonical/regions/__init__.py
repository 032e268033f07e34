"""Regions of values, which conditions keep terms within."""
