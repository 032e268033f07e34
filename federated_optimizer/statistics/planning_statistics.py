"""Statistics of sources and recursions while they run: rows, and how often they change."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS, Speeds
from federated_optimizer.statistics.wires import DEFAULT_WIRES, Wires
from streamsql.algebra.choices import Way
from streamsql.algebra.operators import Plan


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Facts about a source; None where nobody knows.

    Attributes:
        rows: Rows that hold at present, over all gateways.
        changes: Rows that come or go per second.
        compared: Of a large table in a database: the columns that it compares as we do, so that it
            can compute groups.
    """

    rows: float | None = None
    changes: float | None = None
    compared: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RecursionFacts:
    """Counts of a recursion while it ran.

    Attributes:
        base_rows: Rows it reads.
        view_rows: Rows it has.
        changes: Base rows that come or go per second.
        view_changes: View rows that come or go per base row that does.
        age: Seconds since it was counted last.
    """

    base_rows: float
    view_rows: float
    changes: float
    view_changes: float
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class Passing:
    """The share of a source's rows that a predicate was seen to pass, with its range now."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """Facts about a column of a source, as it is over all of its readings; None where unknown.

    Attributes:
        distinct: Values other than NULL, over all gateways.
        local: The same at one gateway, on average.
        common: Share of the most common value.
        most: What the share of a value may be at most.
        nulls: Share of NULL.
        same: Share of readings that keep the value of the one in whose place they are.
        deciles: Of numbers: the least one, nine deciles, the greatest one.
        unsure: By how much a share may be wrong, either way.
    """

    distinct: float
    local: float
    common: float = 0.0
    most: float = 1.0
    nulls: float = 0.0
    same: float | None = None
    deciles: tuple[float, ...] = ()
    unsure: float = 0.0


@dataclass(frozen=True, slots=True)
class Homes:
    """Homes of the ends of links: each lives at the gateway that has the links which start there.

    Attributes:
        gateway: By the name of an end.
        local: Share of links whose ends live at one gateway.
    """

    gateway: Mapping[str, str] = field(default_factory=dict)
    local: float = 0.0


Parents = Mapping[str, str | None]
"""Gateways by the one to which each sends its parts; None: to the base."""

Met = tuple[tuple[str, ...], tuple[str, ...]]
"""Sources whose devices meet, and the gateways where they do."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices that gateways have announced, whose names are the keys of their rows.

    Attributes:
        gateways: By source, in lower case, and name.
        bytes: That one device of a source sends a second at a gateway, by both; where it is known.
        homes: Of joins that a query to be planned computes now, which stay as they are: by the
            sources whose keys are joined, in lower case and sorted ("" of a side that is joined by
            another column), and by the gateways.
        trees: Of gateways that merge parts of an operator now, which stay likewise: by all its
            gateways, to which one each sends; None: to the base.
    """

    gateways: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    bytes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    homes: Mapping[Met, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    trees: Mapping[tuple[str, ...], Parents] = field(default_factory=dict)

    def sent(self, source: str, gateway: str) -> float:
        """Return what a device sends at a gateway: of all alike where nothing is known."""
        return self.bytes.get((source, gateway), 1.0)


@dataclass(frozen=True, slots=True)
class Placed:
    """Sites where a running query computes a recursion.

    Attributes:
        way: It is changed only for one that is much cheaper, since changing it costs building
            everything up again.
        sites: In their order.
        homes: As in the fragment; they stay as they are as long as the sites do.
    """

    way: Way
    sites: tuple[str, ...]
    homes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Statistics:
    """Everything known; nothing by default.

    Attributes:
        sources: By name, in lower case.
        passing: By source, in lower case, and `predicate_text`.
        row_bytes: Of rows as they were sent, without their share of the message, by source and
            columns (`sent_columns`).
        recursions: By the key of the recursion (`recursion_key`).
        placed: By the same key, where the query to be planned computes it now.
        homes: Of the ends of links.
        devices: Where they are.
        local_rows: Most rows that the static engine evaluates without Spark; None: it has none, or
            has not said.
        columns: By source and column, in lower case.
        looked_up: Tables, in lower case, in which the query to be planned looks keys up now; that
            is changed only for much smaller ones.
        text_bytes: Mean bytes of the texts of columns, by source and column, in lower case.
        wires: What sending costs between which sites.
        speeds: Of engines.
        outgrown: Whether a table had too many rows for the gateways of the query to be planned.
        nodes: The plans of what leaves stand for that read rows of other runs, by name.
    """

    sources: Mapping[str, SourceFacts] = field(default_factory=dict)
    recursions: Mapping[str, RecursionFacts] = field(default_factory=dict)
    placed: Mapping[str, Placed] = field(default_factory=dict)
    homes: Homes = Homes()
    devices: Devices = Devices()
    looked_up: frozenset[str] = frozenset()
    local_rows: int | None = None
    passing: Mapping[tuple[str, str], Passing] = field(default_factory=dict)
    row_bytes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    columns: Mapping[tuple[str, str], ColumnFacts] = field(default_factory=dict)
    text_bytes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    wires: Wires = DEFAULT_WIRES
    speeds: Speeds = DEFAULT_SPEEDS
    outgrown: bool = False
    nodes: Mapping[str, Plan] = field(default_factory=dict)


NOTHING_KNOWN = Statistics()
