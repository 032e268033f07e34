"""One site: its sources, its queries, the steps it takes, and what it reports of itself."""
