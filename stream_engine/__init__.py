"""The in-network engine: incremental circuits, recursion with provenance, exchange of changes."""
