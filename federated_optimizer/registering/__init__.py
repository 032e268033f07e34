"""Registration: a bound query becomes a bundle over what runs, and the nodes that it wants.

`registration_terms` says what goes in and comes out, `run_bundles` makes bundles of shared plans,
`registration` decides which nodes are made, `computed_anew` which are not worth reading.
"""
