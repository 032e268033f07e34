"""Views that are refreshed at times of day: their rows on disk, and when to compute them again."""
