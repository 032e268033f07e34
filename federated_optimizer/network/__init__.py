"""Runs in the network: bundles that several queries read. Pure."""
