"""Names of methods, and refusals of them."""

import enum
from dataclasses import dataclass

from federated_optimizer.alternatives.heuristics import LIFTED, Heuristic
from streamsql.algebra.choices import Way


class Method(enum.StrEnum):
    """A way of computing one operator.

    SHIP: where its inputs are, and its rows travel to the base, or to gateways that join them.
    BASE: at the base, over inputs that are there. PARTS: every gateway computes a part of it, and
    the base puts them together. TREE: likewise, and gateways merge parts of others on their way.
    SITES: where its inputs are, and nothing travels. KEYS: at the base, and a stored table is asked
    for the keys of the other side. CENTRE, FLOOD, WITNESS, ANNOTATIONS: the ways of a recursion.
    BROADCAST_LEFT and BROADCAST_RIGHT: this side of a join goes to all gateways of the other one,
    each of which joins its own rows. HASHED: rows of both sides go to the gateway of their key's
    hash, PAIRED: to one chosen for the device that the key names. KEYS_LEFT and KEYS_RIGHT: the
    keys of this side go to all gateways of the other one, which send to the base what these find.
    STORED_ROWS: a stored table goes to all gateways of a stream, each of which joins its own rows.
    STORED_KEYS: the keys of a stored table go there, and what these find goes to the base.
    ORDER: as another order of the joins. EARLY: as an aggregate of one side of a join before it.
    BOUND: with a recursion below it that derives only what is asked for.
    """

    SHIP = "ship"
    BASE = "base"
    PARTS = "parts"
    TREE = "parts merged on their way"
    SITES = "sites"
    KEYS = "keys"
    ORDER = "order"
    EARLY = "early"
    BOUND = "bound"
    CENTRE = Way.CENTRE.value
    FLOOD = Way.FLOOD.value
    WITNESS = Way.WITNESS.value
    ANNOTATIONS = Way.ANNOTATIONS.value
    BROADCAST_LEFT = "sending the left side to all gateways of the right"
    BROADCAST_RIGHT = "sending the right side to all gateways of the left"
    HASHED = "repartition"
    PAIRED = "choosing a gateway for each device"
    KEYS_LEFT = "sending keys of the left side to all gateways of the right"
    KEYS_RIGHT = "sending keys of the right side to all gateways of the left"
    STORED_ROWS = "sending the table to the gateways"
    STORED_KEYS = "sending keys of the table to the gateways"


REWRITTEN = frozenset({Method.ORDER, Method.EARLY, Method.BOUND})
"""Methods that compute an equal plan."""

CUT = frozenset(Method) - {Method.SHIP, Method.SITES} - REWRITTEN
"""Methods that the cutter has to be told: it does the others where nobody has chosen."""

IN_NETWORK = frozenset(
    {
        Method.BROADCAST_LEFT,
        Method.BROADCAST_RIGHT,
        Method.HASHED,
        Method.PAIRED,
        Method.KEYS_LEFT,
        Method.KEYS_RIGHT,
    }
)
"""Methods by which rows travel from gateways to gateways."""

TO_GATEWAYS = IN_NETWORK | {Method.STORED_ROWS, Method.STORED_KEYS}
"""Methods by which rows travel to gateways, from gateways or from the static engine."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a method does not compute an operator, in words.

    Attributes:
        heuristic: The rule by which it is not considered, though it would be right.
    """

    reason: str
    heuristic: Heuristic | None = None


def not_considered(heuristic: Heuristic) -> Refused:
    """Return that a rule leaves a method out."""
    return Refused(f"{heuristic} ({LIFTED})", heuristic)
