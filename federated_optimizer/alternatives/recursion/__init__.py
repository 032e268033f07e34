"""Methods of recursions: where they are computed, and how much of them is derived."""
