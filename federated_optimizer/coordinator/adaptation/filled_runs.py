"""Time after which a run that begins now gives what one gives that has run for long.

Most runs are functions of what sources hold now, and need none. A window by time over readings that
no site keeps is a function of the readings of its length: after that time beside an older run both
have seen the same. Where the lake fills windows, none passes: the site is busy until they are full.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from federated_optimizer.network.shareable import reasons_alone, why_alone
from streamsql.algebra.operators import Scan, ScanPart, Window, WindowKind, walk_plan
from streamsql.algebra.streams import Emit
from streamsql.catalog.system import is_site_source, is_system_table
from streamsql.data.durations import duration_text
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import Engine, FragmentBundle

MARGIN = 5_000_000
"""Microseconds by which clocks of sites and devices may be ahead of each other."""
LONGEST_BESIDE = 3_600_000_000 + MARGIN
"""Microseconds that two runs may be beside each other until windows of the new one are filled: an
hour's window may."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Whether, and when, a run that begins now gives what an older one gives.

    Attributes:
        microseconds: Of running beside the other one, with all sites there.
        never: Why no time suffices, in words; or empty.
    """

    microseconds: int = 0
    never: str = ""


def when_alike(bundle: FragmentBundle) -> Alike:
    """Return when a new run of a bundle gives what an older run of an equal query gives."""
    if bundle.emit != Emit.RELATION:
        return Alike(never=why_alone(replace(bundle, fills=())))
    back = {id(scan): reach for scan, reach in _windowed(bundle)}
    longest = 0
    for node, fragment, reason in reasons_alone(bundle):
        reach = back.get(id(node)) if isinstance(node, Scan) else None
        if reach is None or fragment.engine == Engine.BASE:
            return Alike(never=reason)
        if isinstance(node, Scan) and node.source not in bundle.fills:
            longest = max(longest, reach + MARGIN)
    return Alike(longest)


def too_long(alike: Alike) -> str:
    """Return why a run cannot wait until it gives what an older one gives; empty: it can."""
    if alike.microseconds <= LONGEST_BESIDE:
        return ""
    return (
        f"its windows would take {duration_text(alike.microseconds)} to be filled, and no lake "
        "fills them"
    )


def _windowed(bundle: FragmentBundle) -> Iterator[tuple[Scan, int]]:
    """Yield the scans of readings below windows that forget by time, with how far these reach."""
    for fragment in bundle.fragments:
        for node in walk_plan(fragment.plan):
            if isinstance(node, Window) and _is_log(node.input):
                reach = _reach(node)
                if reach is not None:
                    yield node.input, reach


def _is_log(scan: Scan) -> bool:
    of_us = is_system_table(scan.source) or is_site_source(scan.source)
    return scan.is_log and scan.part == ScanPart.ROWS and scan.history is None and not of_us


def _reach(window: Window) -> int | None:
    if window.kind == WindowKind.NOW:
        return MICROSECONDS
    size = window.range if window.kind == WindowKind.ROWS else window.size
    return None if size is None else size + (window.slide or 0)
