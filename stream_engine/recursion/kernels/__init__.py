"""Recursions that are graph problems, maintained by dynamic-graph algorithms.

`recognition` finds the problem in the rules, `derivations` turns changes of the leaves into changes
of edges and sources, and one of `reach`, `costs` and `plateaus` keeps what the sources reach, in
the manner of Ramalingam and Reps (J. Algorithms 21, 1996): work in proportion to what changes.
"""
