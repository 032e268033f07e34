"""Analysis of recursive plans: growth, termination, aggregate selections that can be pushed."""
