"""Search of the memo for the cheapest complete plan.

`building` makes the memo of a query; `top_down` finds the cheapest plan with bounds,
`cheapest_plans` the first few, `choosing` takes one and says why. `joins_by_place` orders inner
joins, `network_joins` finds those of rows of different gateways.
"""
