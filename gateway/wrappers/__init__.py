"""Wrappers: what turns a device, a machine, a calendar or a recording into readings."""
