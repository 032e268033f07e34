"""Simulated motes: a building whose people come, sit, work and go."""
