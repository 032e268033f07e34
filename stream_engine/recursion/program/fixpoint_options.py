"""How a fixpoint is maintained, and what it counts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from stream_engine.operators.rows.operator import RoundTrace
from stream_engine.recursion.program.placement import OwnerFunction
from stream_engine.recursion.program.program import never
from streamsql.algebra.choices import (
    Annotations,
    Compiled,
    DiagramOrder,
    RecursionChoice,
    Shipping,
    Strategy,
    Way,
)
from streamsql.errors import UnsupportedError
from streamsql.wire.bundles.partitioning import site_of


@dataclass(frozen=True, slots=True)
class RecursionOptions:
    """How a fixpoint is maintained. The view is the same whatever the options.

    Attributes:
        shipping: When alternative derivations are sent on.
        interval: Microseconds between two sendings of buffered alternatives; None for never.
        capacity: Buffered alternatives that cause a sending; None for no bound but `width`.
        annotations: Never AUTO, and so is `order`.
        width: Bound on the buffered supports of a row; beyond it rows are derived again instead.
        packed: Whether the rows of a message share tables of values and tokens; without, every row
            carries its annotation as the literature counts it, for comparison.
        elastic: Share of the view above which it is computed again instead of repaired; at one
            half both cost about the same.
        max_derivations: Bound on the derivations of one settle.
        owner: Chooses the site of a key.
        interrupted: Whether the query is to stop at once; asked in the middle of a change.
    """

    strategy: Strategy = Strategy.AUTO
    way: Way = Way.AUTO
    shipping: Shipping = Shipping.LAZY
    interval: int | None = None
    capacity: int | None = None
    annotations: Annotations = Annotations.DNF
    order: DiagramOrder = DiagramOrder.DFS
    compiled: Compiled = Compiled.AUTO
    width: int = 64
    packed: bool = True
    elastic: float = 0.5
    max_derivations: int = 20_000_000
    owner: OwnerFunction = site_of
    interrupted: Callable[[], bool] = never


def options_of(choice: RecursionChoice, given: RecursionOptions | None = None) -> RecursionOptions:
    """Return the options of a recursion: what its text chooses, over what is given.

    Raises:
        UnsupportedError: There is no such way of shipping.
    """
    options = given or RecursionOptions()
    changes: dict[str, Any] = {}
    for name in ("strategy", "way", "order", "annotations", "compiled"):
        value = getattr(choice, name)
        if value != "auto":
            changes[name] = value
    if choice.width:
        changes["width"] = choice.width
    if choice.capacity:
        changes["capacity"] = choice.capacity
    if choice.ship.isdecimal():
        changes["shipping"], changes["interval"] = Shipping.LAZY, int(choice.ship)
    elif choice.ship in tuple(Shipping):
        changes["shipping"] = Shipping(choice.ship)
    elif choice.ship != "auto":
        raise UnsupportedError(
            f"no way of shipping {choice.ship!r:.40}",
            hint=f"choose one of {', '.join(Shipping)}, or an interval",
        )
    return replace(options, **changes) if changes else options


@dataclass(slots=True)
class FixpointCounters:
    """Work done since the start, for EXPLAIN ANALYZE and benchmarks.

    Attributes:
        derivations: Rule results, absorbed ones too.
        touched: Rows whose sent annotation mentioned a dead token.
        sent_kills: Dead tokens announced, counted per receiver.
        sent_bytes: Bytes of annotations sent.
        recomputed: Changes for which the view was computed again instead of repaired.
    """

    settles: int = 0
    rounds: int = 0
    derivations: int = 0
    kills: int = 0
    touched: int = 0
    rederived: int = 0
    received_rows: int = 0
    sent_rows: int = 0
    sent_kills: int = 0
    sent_bytes: int = 0
    recomputed: int = 0
    trace: RoundTrace = field(default_factory=RoundTrace)
