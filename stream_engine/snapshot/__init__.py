"""The state of a site as bytes, and back: snapshots, and a journal of what came after them."""
