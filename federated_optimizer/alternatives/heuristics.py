"""Heuristics: rules by which plans are left out that seldom pay, though they would be right.

They are those of Liu's thesis, chapter 6. A query or the system may lift them; a search has more
plans then. What is wrong, not dear, is refused in any case.
"""

import enum


class Heuristic(enum.StrEnum):
    """A rule of the search, as EXPLAIN names it.

    ONE_JOIN: gateways compute one join in a fragment. TO_BASE: rows that gateways have joined go to
    the base, and not to other gateways. NO_PRODUCT: what has no equality is joined at the base.
    """

    ONE_JOIN = "one join a fragment"
    TO_BASE = "joined rows go to the base"
    NO_PRODUCT = "no product at gateways"


Heuristics = frozenset[Heuristic]

ALL: Heuristics = frozenset(Heuristic)
"""Those of queries and systems that say nothing."""

NONE: Heuristics = frozenset()

LIFTED = "heuristics = 'no' considers it"
"""How a rule is lifted, behind its name."""


def heuristics_of(kept: bool | None) -> Heuristics:
    """Return the heuristics of a search; None: nobody says anything."""
    return NONE if kept is False else ALL
