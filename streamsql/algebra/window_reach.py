"""The reach of windows into sources of which no site keeps rows."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from streamsql.algebra.operators import Plan, Window, WindowKind, walk_plan
from streamsql.data.types import DataType

LOOKBACK = 86_400_000_000
"""Microseconds before now in which the last rows of a window by count are looked for."""


class Reach(msgspec.Struct, frozen=True):
    """The windows over one source, all together.

    Attributes:
        source: Its name.
        back: How far the longest reaches back, in microseconds.
        columns: Name, type and unit of each of its columns.
        is_counted: Whether one of them is by count, without an age.
        lateness: How much later than others a reading may come, in microseconds; None: any.
    """

    source: str
    back: int
    columns: tuple[tuple[str, DataType, str], ...]
    is_counted: bool = False
    lateness: int | None = None


class _Placed(Protocol):
    @property
    def plan(self) -> Plan:
        """The computation."""
        ...


def reaches_of(fragments: Iterable[_Placed]) -> list[Reach]:
    """Return the reaches of the windows in some fragments, one per source."""
    return window_reaches(fragment.plan for fragment in fragments)


def window_reaches(plans: Iterable[Plan]) -> list[Reach]:
    """Return how far windows over logs reach back; other sources keep what windows need."""
    found: dict[str, Reach] = {}
    for plan in plans:
        for node in walk_plan(plan):
            if not isinstance(node, Window) or not node.input.is_log:
                continue
            reach = _reach(node)
            if reach is None:
                continue
            known = found.get(reach.source)
            if known is not None:
                reach = msgspec.structs.replace(
                    reach,
                    back=max(reach.back, known.back),
                    is_counted=reach.is_counted or known.is_counted,
                )
            found[reach.source] = reach
    return list(found.values())


def _reach(window: Window) -> Reach | None:
    scan = window.input
    size = window.range if window.kind == WindowKind.ROWS else window.size
    is_counted = window.kind == WindowKind.ROWS and size is None
    if window.kind not in (WindowKind.ROWS, WindowKind.RANGE):
        return None
    back = LOOKBACK if size is None else size + (window.slide or 0)
    units = scan.units or ("",) * len(scan.columns)
    fields = scan.columns.fields
    columns = tuple((f.name, f.dtype, unit) for f, unit in zip(fields, units, strict=True))
    return Reach(scan.source, back, columns, is_counted, scan.lateness)
