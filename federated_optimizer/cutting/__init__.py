"""Cutting: a plan with chosen methods becomes fragments, with reasons in words.

`cutter` finds for every sub-plan the engine that computes it, `bundling` numbers the pieces,
`placing` does both, `bundle_explain` prints them.
"""
