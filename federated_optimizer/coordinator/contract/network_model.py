"""The network of shared computations as the console sees it.

A node is a place whose rows are at a base site, and may be read by other runs there: the result of
a run (node `17` of run q17), or a fragment of gateways or of the static engine (`17/f1`).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class NodeKind(StrEnum):
    """The operator that makes a node what it is: the topmost one but for filters and columns."""

    SELECTION = "selection"
    JOIN = "join"
    AGGREGATE = "aggregate"
    DISTINCT = "distinct"
    SET_OPERATION = "set operation"
    RECURSION = "recursion"
    WINDOW = "window"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class NodeQuery:
    """A query that reads a node, as far as whoever asks may see it."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class NetworkNode:
    """A node of the network.

    Attributes:
        name: "17", or "17/f1" of a fragment.
        run: The run that computes it.
        fragment: Its id in the run.
        computes: A line in words of StreamSQL; other nodes in it are called "node 12".
        sites: Where it is computed.
        sources: Sources and tables that it reads itself.
        reads: The nodes that it reads.
        readers: The nodes that read it; at most `MOST_READERS`, of those that may be seen.
        more_readers: Number of those that are not named.
        queries: Whose answer the node is; at most `MOST_QUERIES`, of those that may be seen.
        direct: Number of all queries whose answer it is.
        resting: Number of all queries that rest on it, directly or through other nodes.
        owner: The query that the run was started for, or the oldest that is left; empty where
            whoever asks may not see it, and where it is kept for others.
        kept: Whether it is kept for other nodes alone: it is the answer of no query.
        since: When the oldest of its queries was started, in microseconds since 1970.
        rows: Rows that it has now; None: not known.
        messages: A second, to other sites; None: not measured.
        bytes: A second, likewise.
    """

    name: str
    run: str
    fragment: str
    kind: NodeKind
    computes: str
    sites: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    more_readers: int = 0
    queries: tuple[NodeQuery, ...] = ()
    direct: int = 0
    resting: int = 0
    owner: str = ""
    kept: bool = False
    since: int = 0
    rows: int | None = None
    messages: float | None = None
    bytes: float | None = None

    @property
    def is_leaf(self) -> bool:
        """Return whether the node is a fragment, not the result of a run."""
        return "/" in self.name


@dataclass(frozen=True, slots=True)
class Network:
    """The nodes that somebody may see, those first on which most queries rest.

    Attributes:
        queries: Number of all queries that rest on nodes of the network.
        hidden: Number of nodes that may not be seen.
        unlisted: Number of nodes that may be seen and are left out because there are many.
    """

    nodes: tuple[NetworkNode, ...]
    queries: int = 0
    hidden: int = 0
    unlisted: int = 0


MOST_NODES = 1_000
"""Nodes that are listed at once."""
MOST_QUERIES = 20
"""Queries that are named at a node."""
MOST_READERS = 100
"""Nodes that are named as the readers of a node."""


class DifferenceKind(StrEnum):
    """In which way a row of the index is not as it ought to be."""

    MISSING = "missing"
    SURPLUS = "surplus"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class IndexDifference:
    """A row of the computation index in the catalog that is not as what runs says.

    Attributes:
        run: Of the row.
        relation: Such as "literals"; "run" where the index has nothing of it, or too much.
        words: The row, or what is different.
    """

    run: str
    relation: str
    kind: DifferenceKind
    words: str


@dataclass(frozen=True, slots=True)
class IndexReport:
    """Result of comparing the computation index with the runs.

    Attributes:
        runs: Number of runs that were compared.
        moving: Number of runs on trial: queries that are moving to them cause differences.
        rebuilt: Whether the differences have been mended.
    """

    runs: int
    differences: tuple[IndexDifference, ...] = ()
    moving: int = 0
    rebuilt: bool = False


class NetworkApi(Protocol):
    """The network of shared computations."""

    def network(self, most: int = MOST_NODES) -> Network:
        """Return the network of shared computations: at most `most` nodes, the most used first."""
        ...

    def query_changes(self) -> int:
        """Return what grows whenever queries begin or end, get new plans, fail or are well again.

        Lists of queries need not be made again while it stays.
        """
        ...

    async def check_network(self, *, rebuild: bool = False) -> IndexReport:
        """Compare the computation index in the catalog with the runs; mend it on demand.

        Raises:
            DeploymentError: The catalog cannot be used, or queries move to other runs just now.
        """
        ...
