"""The gate of the optimizer: a world of sensors, queries over it, and what each plan costs."""
