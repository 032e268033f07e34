"""Forms of plans: blocks, names of what they compute, and how one lies on another."""
