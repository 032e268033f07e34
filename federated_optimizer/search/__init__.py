"""Search of the memo for the cheapest complete plan.

`building` makes the memo of a query; `top_down` finds the cheapest plan with bounds,
`cheapest_plans` the first few, both with `fronts` of each part; `choosing` takes one and says why,
in `metric_words`; `turning_facts` says which fact would turn that. `joins_by_place` orders inner
joins, `network_joins` finds those of rows of different gateways.
"""
