"""`pando up`: the whole federation on one machine, every service its own process."""
