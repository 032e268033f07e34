"""The past as a trial sees it: readings in the order in which they became known, and absences."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from streamsql.data.events import SourceEvent


@dataclass(frozen=True, slots=True)
class Readings:
    """Events of one source that became known at one time.

    Attributes:
        at: Microseconds since 1970 UTC.
        gateway: Whose they are.
        direct: They are for the base sites that read the source themselves, which know them when
            they arrive; otherwise for the gateway, which knows them when they are taken.
    """

    at: int
    gateway: str
    source: str
    events: tuple[SourceEvent, ...]
    direct: bool = False


@dataclass(frozen=True, slots=True)
class Presence:
    """A gateway left, or is back."""

    at: int
    gateway: str
    online: bool


Happening = Readings | Presence


def merged(streams: Iterable[Iterable[Happening]]) -> Iterator[Happening]:
    """Yield the happenings of several streams by time; each is in order by itself."""
    return heapq.merge(*streams, key=lambda happening: happening.at)


def after_grace(states: Iterable[Presence], grace: int) -> Iterator[Presence]:
    """Yield when the rows of gateways go and come back: an absence within the grace is none.

    Args:
        states: In the order of time, of all gateways; repeated ones say nothing new.
        grace: How long the rows of a gateway that is away stay, in microseconds.
    """
    left: dict[str, int] = {}
    found: list[Presence] = []
    for state in states:
        if not state.online:
            left.setdefault(state.gateway, state.at)
            continue
        since = left.pop(state.gateway, None)
        if since is not None and since + grace < state.at:
            found.append(Presence(since + grace, state.gateway, online=False))
            found.append(Presence(state.at, state.gateway, online=True))
    found += [Presence(at + grace, gateway, online=False) for gateway, at in left.items()]
    yield from sorted(found, key=lambda presence: presence.at)
