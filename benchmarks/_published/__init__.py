"""Tables of the documentation that are written from files of figures in `docs/results`."""
