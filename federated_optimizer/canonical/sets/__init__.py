"""Sets of predicates, and the index of them."""
