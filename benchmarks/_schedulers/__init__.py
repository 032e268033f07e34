"""Bursts on a site under each scheduler."""
