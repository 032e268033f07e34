"""Canonical forms of predicates: comparisons, ranges, and what is true of the rows of a plan.

For rules of plans, in the order of use: `linear_comparisons` reads one predicate, `column_ranges`
combines many, `row_facts` says which hold for every row of a plan.

For sharing between queries: `canonical_expressions` writes an expression as all others of its
value; `truth_conditions` reads a predicate as clauses (`normal_forms`) of conditions (`terms`,
`regions`); `theory` says what follows from conditions; `predicate_sets` compares filters, and
`predicate_index` finds those that imply a further one or are implied by it (`region_lists`,
`condition_shares`, `set_facts`, and `index_rows` for tables).
"""
