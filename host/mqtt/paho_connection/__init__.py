"""Connections by paho: packets, bursts, events."""
