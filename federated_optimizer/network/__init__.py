"""The network: its sites (`topology`), and which bundles several queries read (`shareable`)."""
