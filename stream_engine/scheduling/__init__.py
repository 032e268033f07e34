"""Which operator of a site runs next, and what waits between operators meanwhile."""
