"""Delete and rederive (DRed): the classical way to maintain recursive views, as a baseline."""
