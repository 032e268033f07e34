"""What is known about sources and recursions while they run: rows, and how often they change."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What is known of a source; None where nobody knows.

    Attributes:
        rows: Rows that hold at present, over all gateways.
        changes: Rows that come or go per second.
    """

    rows: float | None = None
    changes: float | None = None


@dataclass(frozen=True, slots=True)
class RecursionFacts:
    """What a running recursion has measured.

    Attributes:
        base_rows: Rows it reads.
        view_rows: Rows it has.
        changes: Base rows that come or go per second.
        view_changes: View rows that come or go per base row that does.
    """

    base_rows: float
    view_rows: float
    changes: float
    view_changes: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """Everything known; nothing by default.

    Attributes:
        sources: By name, in lower case.
        recursions: By the key of the recursion (`recursion_key`).
        ways: By the same key, the way in which a query computes it now: it is changed only for
            one that is much cheaper, since changing it costs building everything up again.
    """

    sources: Mapping[str, SourceFacts] = field(default_factory=dict)
    recursions: Mapping[str, RecursionFacts] = field(default_factory=dict)
    ways: Mapping[str, str] = field(default_factory=dict)


NOTHING_KNOWN = Statistics()
