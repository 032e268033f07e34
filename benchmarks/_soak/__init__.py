"""A federation of real processes: what it is fed, what is done to it, what it has to answer."""
