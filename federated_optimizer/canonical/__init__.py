"""Canonical forms of predicates: comparisons, ranges, and what is true of the rows of a plan.

In the order of use: `linear_comparisons` reads one predicate, `column_ranges` combines many,
`row_facts` says which hold for every row of a plan; `canonical_expressions` writes one expression
as all others of its value, `predicate_sets` compares conjunctions, `predicate_index` finds those
that imply a further one or are implied by it.
"""
