"""Joins after a semi-join: keys of one side find the rows of the other that go to the base.

The keys go to all gateways of the other side. The join is at the base, over one side as a whole and
what was found of the other.

INNER and EXISTS are legal from either side. Rows of LEFT, FULL and NOT EXISTS count without a
partner, too: the preserved side cannot be reduced, and would show rows as lonely until their keys
have found the others.
"""

from dataclasses import dataclass

from federated_optimizer.alternatives.gateway_pieces import TwoSided
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.joins.meeting import why_not_in_network
from federated_optimizer.alternatives.key_lookup import keys_of
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.pieces import GatewayPiece
from federated_optimizer.alternatives.words import names_text
from streamsql.algebra.operators import Join, JoinKind, Plan

SEMI_JOINS = (Method.KEYS_RIGHT, Method.KEYS_LEFT)


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """Keys and rows that travel for a join at the base after a semi-join.

    Attributes:
        keys: Of the side that is sent whole: distinct, at its gateways.
        pairs: Columns of the other side, which is reduced, and of the keys.
        reduces_left: Which side is reduced.
        words: The method as EXPLAIN names it.
    """

    keys: Plan
    pairs: tuple[tuple[int, int], ...]
    reduces_left: bool
    words: str

    def reduced(self, side: Plan, keys: Plan) -> Join:
        """Return the rows of a side that keys find."""
        return Join(side, keys, JoinKind.SEMI, self.pairs)


def semi_join(
    plan: TwoSided,
    left: GatewayPiece,
    right: GatewayPiece,
    method: Method,
    kept: Heuristics = ALL,
) -> SemiJoin | Refused:
    """Return what travels, or why it does not; keys are those of the pieces' own plans."""
    reduces_left = method == Method.KEYS_RIGHT
    reduced, whole = (left, right) if reduces_left else (right, left)
    refused = why_not_in_network(plan, (reduced,), (whole,), kept)
    if refused is not None or not isinstance(plan, Join):
        return refused or Refused("only joins have keys")
    if plan.kind not in (JoinKind.INNER, JoinKind.SEMI):
        return Refused(
            "rows without a partner count, and would show as such until their keys are back"
        )
    if not plan.keys:
        return Refused("without an equality there are no keys")
    mine = tuple(pair[0 if reduces_left else 1] for pair in plan.keys)
    theirs = tuple(pair[1 if reduces_left else 0] for pair in plan.keys)
    pairs = tuple((column, number) for number, column in enumerate(mine))
    words = (
        f"keys of {names_text(whole.sources)} sent to all gateways of "
        f"{names_text(reduced.sources)}, what they find joined at the base"
    )
    # A filter of NULL keys, which find nothing, would save a row for each gateway.
    keys = keys_of(whole.plan, theirs, with_null=True)
    return SemiJoin(keys, pairs, reduces_left, words)
