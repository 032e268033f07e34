"""Joins: inner, outer, semi, band, as-of, of several inputs."""
