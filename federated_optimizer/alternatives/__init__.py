"""Methods by which an operator may be computed, each legal or refused in words.

`method`: their names. `operators_in_parts`: the part of an operator that every gateway computes of
its own rows, and what the base makes of the parts; one file an operator. `pieces`: sub-plans that
know where they can run. `gateway_pieces`: what gateways do by themselves. `broadcast_join`,
`hashed_join` and `paired_join`: joins at gateways to which rows of others come, as `meeting`
describes them; `network_methods` has them by name. `keys_first`: keys find what goes to the base.
`recursions`: the ways of a recursion. `words`: reasons why a piece was not pushed further.
"""
