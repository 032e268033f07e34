"""A site's state on disk: a snapshot and a journal, and what a restart has lost all the same."""
