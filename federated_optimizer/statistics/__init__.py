"""Facts about sources, predicates, links, recursions and engines; pure: times are passed in.

In the order of their way: `fact` (one number with its range, age and origin), `default_facts` (for
what nobody has measured), `smoothed_rates` (a counter becomes a rate), `predicate_text`
(how predicates are known), `fact_store` (all facts of a
federation, bounded). `planning_statistics` is what a planner reads of them, `passing_rows` the
shares of rows that pass filters, `wires` what sending costs, `link_hops` the hops between gateways,
`speeds` those of engines.
"""
