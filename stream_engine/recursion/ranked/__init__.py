"""Ranked maintenance of recursions: every row keeps a proof that rests on older rows only."""
