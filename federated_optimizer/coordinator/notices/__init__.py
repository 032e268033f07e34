"""Alarms: raised, acknowledged, unknown."""
