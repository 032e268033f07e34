"""Windows that begin with what the lake has: which sources of a plan, and how much is read."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from msgspec.structs import replace

from streamsql.algebra.operators import (
    OnClose,
    Plan,
    Scan,
    SourceKind,
    StreamWindow,
    ToStream,
    walk_plan,
)
from streamsql.algebra.past_times import History, HistoryKind, Moment
from streamsql.algebra.window_reach import reaches_of, window_reaches
from streamsql.data.durations import duration_text
from streamsql.wire.fragments import FragmentBundle

_FROM_NOW_ON = (ToStream, StreamWindow, OnClose)


class PastSizes(Protocol):
    """Knows how much plans read of the past."""

    def get_ready(self) -> None:
        """Make ready what `sizes` needs; called before it, in the process that forks others."""
        raise NotImplementedError

    def sizes(self, plan: Plan) -> Iterable[object]:
        """Return what a plan reads of the past, a sentence per scan; blocking."""
        raise NotImplementedError


Sizes = Callable[[Plan], Iterable[object]]


def filled_sources(bundle: FragmentBundle) -> tuple[str, ...]:
    """Return the sources that windows of a bundle begin with the past of.

    A stream of what appears and disappears, and one of closed windows, begin with the query: what
    they would have told before it is over.
    """
    nodes = (node for fragment in bundle.fragments for node in walk_plan(fragment.plan))
    if any(isinstance(node, _FROM_NOW_ON) for node in nodes):
        return ()
    return tuple(sorted(reach.source for reach in reaches_of(bundle.fragments)))


def with_start(
    bundle: FragmentBundle, current: FragmentBundle | None, now: Callable[[], int]
) -> FragmentBundle:
    """Return a bundle with the time from which its past counts, if that moves with its start.

    `current` is what the query runs, if it does.
    """
    nodes = (node for fragment in bundle.fragments for node in walk_plan(fragment.plan))
    if not any(isinstance(n, Scan) and n.history and n.history.follows_start for n in nodes):
        return bundle
    started = 0 if current is None else current.started
    return replace(bundle, started=started or now())


def fill_notes(plan: Plan, fills: tuple[str, ...], now: int, sizes: Sizes | None) -> Iterator[str]:
    """Yield a sentence per source with which windows of a fragment begin; blocking.

    Args:
        plan: Of the fragment.
        fills: The sources that the lake fills.
        now: Microseconds since 1970 UTC.
        sizes: Returns how much a plan reads of the past; None: nobody knows here.
    """
    for reach in window_reaches((plan,)):
        if reach.source not in fills:
            continue
        text = (
            f"windows over {reach.source} begin with what the lake has of the last "
            f"{duration_text(reach.back)}"
        )
        past = _past(plan, reach.source, now - reach.back, now)
        found = [] if sizes is None else list(sizes(past))
        yield "; it ".join((text, *map(str, found)))


def _past(plan: Plan, source: str, since: int, until: int) -> Scan:
    scan = next(n for n in walk_plan(plan) if isinstance(n, Scan) and n.source == source)
    history = History(HistoryKind.BETWEEN, Moment(since), Moment(until))
    return replace(scan, kind=SourceKind.TABLE, history=history)
