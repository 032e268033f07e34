"""Relations: how many rows they have, and how often these come and go.

`estimates` goes through a plan. It asks `column_estimates` and `column_sources` about values,
`repeated_conditions` about a condition that is tested twice. `semi_join_estimates` is about rows
that keys of other gateways find. A `size_and_motion` is what all of them return.
"""
