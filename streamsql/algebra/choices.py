"""Choices of a recursion: aggregate selection, copies, bounds on rounds, ways of maintenance."""

import enum

import msgspec


class Best(msgspec.Struct, frozen=True):
    """One MIN or MAX of an aggregate selection.

    Attributes:
        value: Position of the aggregated column in the recursive relation.
        minimum: True for MIN, False for MAX.
    """

    value: int
    minimum: bool = True


class AggregateSelection(msgspec.Struct, frozen=True):
    """MIN and MAX pushed into a recursion: per group only the best rows (all ties) count.

    With several aggregates a row counts when it is best for any of them (multi-aggregate
    selection). A row whose value is NULL is not best for that aggregate.

    Attributes:
        group: Positions of the group columns in the recursive relation.
        bests: The aggregates; at least one.
    """

    group: tuple[int, ...]
    bests: tuple[Best, ...]


class Copies(enum.StrEnum):
    """Number of copies of a row with several derivations.

    ONE: once, a set (UNION). ALL: once per derivation (UNION ALL). COUNTED: likewise, but only
    aggregates read it, so that copies are a number and their number has no bound.
    """

    ONE = "one"
    ALL = "all"
    COUNTED = "counted"


class OnMoreRounds(enum.StrEnum):
    """Action when a recursion has rows that need more rounds than its limit.

    RETURN: they are left out. ERROR: the query stops.
    """

    RETURN = "return"
    ERROR = "error"


class RoundLimit(msgspec.Struct, frozen=True):
    """A bound on the rounds of a recursion, counted from nothing: round 1 is its base branches.

    The last column of a bounded relation is the round in which a row comes first.
    """

    rounds: int
    on_more: OnMoreRounds


class Strategy(enum.StrEnum):
    """How a recursion is maintained; see `stream_engine.recursion.strategies`."""

    AUTO = "auto"
    KERNEL = "kernel"
    RANKED = "ranked"
    ABSORPTION = "absorption"
    RELATIVE = "relative"
    DRED = "dred"
    SET = "set"
    RECOMPUTE = "recompute"


WITH_ANNOTATIONS = (Strategy.ABSORPTION, Strategy.RELATIVE)
"""Strategies that keep the provenance of derived rows."""


class Way(enum.StrEnum):
    """What travels between sites.

    CENTRE: base rows to one site. FLOOD: base rows to all sites. ANNOTATIONS: derived rows with
    their provenance. WITNESS: derived rows with one conjunction of it.
    """

    AUTO = "auto"
    CENTRE = "centre"
    FLOOD = "flood"
    ANNOTATIONS = "annotations"
    WITNESS = "witness"


class Shipping(enum.StrEnum):
    """When alternative derivations of a row are sent on.

    LAZY: buffered, and one witness sent when the last one has died; with an interval or a capacity
    all of them from time to time. EAGER: as soon as they are not absorbed by what was sent (the
    papers: every second). WITNESS: one conjunction when the last one has died, kept or derived
    again. SHIP_ALL: as EAGER, and between sites even what is absorbed (a baseline).
    """

    LAZY = "lazy"
    EAGER = "eager"
    WITNESS = "witness"
    SHIP_ALL = "ship-all"


class Annotations(enum.StrEnum):
    """Encoding of provenance: lists of supports, decision diagrams, or relative provenance.

    RELATIVE belongs to the strategy of that name and is not chosen by itself.
    """

    AUTO = "auto"
    DNF = "dnf"
    BDD = "bdd"
    RELATIVE = "relative"


class DiagramOrder(enum.StrEnum):
    """Order of the tokens in decision diagrams."""

    AUTO = "auto"
    DFS = "dfs"
    ARRIVAL = "arrival"
    REBUILD = "rebuild"


class Compiled(enum.StrEnum):
    """Whether kernels may be compiled."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


class RecursionChoice(msgspec.Struct, frozen=True):
    """The requested maintenance of a recursion; the answer is the same whatever is chosen.

    Written `WITH (strategy = '…', ship = '…', …)` behind a query. "auto" leaves the choice to the
    optimizer, and after it to the engine.

    Attributes:
        ship: When alternative derivations go to other sites: "auto", a `Shipping`, or an interval
            in microseconds as digits.
        width: Most supports of an annotation, in units of its encoding; 0 for the default.
        capacity: Rows with alternatives held back that cause a lazy site to send them; 0 for none.
    """

    strategy: Strategy = Strategy.AUTO
    way: Way = Way.AUTO
    ship: str = "auto"
    order: DiagramOrder = DiagramOrder.AUTO
    annotations: Annotations = Annotations.AUTO
    compiled: Compiled = Compiled.AUTO
    width: int = 0
    capacity: int = 0
