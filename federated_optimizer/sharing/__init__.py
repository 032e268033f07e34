"""Sharing: which running computation answers a part of a new query, and what remains to be done.

In the order of use: `blocks` reads a plan as inputs, predicates and outputs; `canonical_plan` names
what a plan computes; `node_offers` are the places of running queries whose rows others may read;
`rules` answer a plan over an offer, one rule a file; `computation_index` finds offers,
`sharing_step` puts them into a query.
"""
