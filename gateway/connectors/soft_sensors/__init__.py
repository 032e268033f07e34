"""This machine as a soft sensor: load, memory, users, processes, temperatures (psutil)."""
