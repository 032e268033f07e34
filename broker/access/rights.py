"""Rights at the broker: which topics each kind of site may publish on and read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from streamsql.wire.topics import LANDERS, PREFIX, check_id

CONTROL_TOPIC: Final = "$CONTROL/dynamic-security/v1"
"""Commands for the broker's accounts."""
RESPONSE_TOPIC: Final = f"{CONTROL_TOPIC}/response"
SINK_ROOTS: Final = ("building", "homeassistant")
"""First levels of the topics that answers may be sent to (CREATE SINK) unless told otherwise."""


class SiteKind(StrEnum):
    """Kinds of clients that a federation's broker knows.

    LANDER: writes readings, states and alarms to disk, and asks gateways for packs that were lost.
    VIEWER: a person or a program that looks at states, readings, links and results and can change
    nothing.
    """

    GATEWAY = "gateway"
    BASE = "base"
    STATIC = "static"
    COORDINATOR = "coordinator"
    VIEWER = "viewer"
    LANDER = "lander"


class Mode(StrEnum):
    """Direction of a right, as seen from the client."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Right:
    """Permission to publish on, or to read, the topics that a filter matches."""

    mode: Mode
    topic: str


def rights_of(
    kind: SiteKind, site: str, federation: str, sinks: tuple[str, ...] = SINK_ROOTS
) -> tuple[Right, ...]:
    """Return the rights of one client; what none of them allows is forbidden.

    Args:
        kind: Of the client.
        site: Its id, which is its user name at the broker too.
        federation: The federation's name (`site` in settings).
        sinks: First levels of topics outside the federation on which the coordinator may publish.

    Raises:
        WireError: A name is not an id.

    Examples:
        >>> rights_of(SiteKind.VIEWER, "ann", "house")[0]
        Right(mode=<Mode.READ: 'read'>, topic='pando/v1/house/gw/+/state')
    """
    return rights_of_pattern(kind, check_id(site), check_id(federation, "federation"), sinks)


def rights_of_pattern(
    kind: SiteKind, site: str, federation: str, sinks: tuple[str, ...] = SINK_ROOTS
) -> tuple[Right, ...]:
    """Return rights for names that need not be ids: `+`, or a placeholder of an access list."""
    root = f"{PREFIX}/{federation}"
    written, read = _TOPICS[kind](site)
    rights = [
        *(Right(Mode.WRITE, f"{root}/{topic}") for topic in written),
        *(Right(Mode.READ, f"{root}/{topic}") for topic in read),
    ]
    if kind is SiteKind.COORDINATOR:
        rights += (
            *(Right(Mode.WRITE, f"{first}/#") for first in sinks),
            Right(Mode.WRITE, CONTROL_TOPIC),
            Right(Mode.READ, RESPONSE_TOPIC),
            Right(Mode.READ, "$SYS/broker/#"),
        )
    if kind is SiteKind.LANDER:
        # Mosquitto checks the filter of a shared subscription as it is written.
        rights += [Right(Mode.READ, f"$share/{LANDERS}/{root}/{topic}") for topic in _SHARED]
    return tuple(rights)


_Topics = tuple[tuple[str, ...], tuple[str, ...]]
"""Topics below the federation that are published on, and that are read."""


def _fragment_site(site: str) -> _Topics:
    """Every site that runs fragments: results and batches from itself, fragments for itself."""
    written = (
        f"dead/{site}",
        f"gw/{site}/rsp/+",
        f"gw/{site}/obs/+",
        f"q/+/x/+/{site}",
        f"q/+/out/{site}",
        f"gw/{site}/flow",
        f"q/+/error/{site}",
    )
    read = (f"gw/{site}/cmd/#", f"q/+/frag/{site}", "gw/+/state", "host/+/state")
    return written, read


def _engine_site(site: str) -> _Topics:
    """Sites that embed the stream engine: gateways and base sites."""
    written, read = _fragment_site(site)
    own = (
        f"gw/{site}/state",
        f"gw/{site}/birth",
        f"gw/{site}/hist/+",
        f"gw/{site}/last/+",
        f"gw/{site}/link/#",
        f"gw/{site}/clock",
        f"gw/{site}/columns",
        # A mark to itself: what was sent to it before has arrived when the mark has.
        f"gw/{site}/cmd/mark",
        # A receiver that missed something asks the sender for a snapshot, in its own name, and
        # tells it which windows have closed.
        f"gw/+/cmd/resync/{site}",
        f"gw/+/cmd/forget/{site}",
        # What the lake has of its readings, for windows that start full.
        f"host/+/fill/own/{site}",
        # An answer to a base site that asked for packs which it lacks.
        f"gw/+/cmd/published/{site}",
    )
    # Batches for itself, its settings, what is declared, and links of an earlier life of its own.
    more = (
        f"q/+/x/{site}/+",
        f"gw/{site}/fill",
        f"gw/{site}/settings",
        "source/+",
        "interest/+",
        f"gw/{site}/link/#",
    )
    return (*own, *written), (*read, *more)


def _base(site: str) -> _Topics:
    """A base site also hosts windows over the readings of all gateways, and asks for lost packs."""
    written, read = _engine_site(site)
    asked = (f"gw/+/cmd/packs/{site}", f"host/+/fill/all/{site}")
    return (*written, *asked), (*read, "gw/+/obs/+", "gw/+/hist/+")


def _static(site: str) -> _Topics:
    written, read = _fragment_site(site)
    # It asks the sender of keys for a snapshot, in its own name.
    own = (
        f"host/{site}/state",
        f"gw/+/cmd/resync/{site}",
        "gw/+/fill",
        # Of stored tables.
        f"gw/{site}/columns",
    )
    return (*own, *written), (
        *read,
        f"q/+/x/{site}/+",
        f"host/{site}/tables",
        f"host/{site}/reports",
        f"host/{site}/fill/+/+",
        # Definitions by which readings that were landed are read.
        "source/+",
    )


_SHARED: Final = ("gw/+/obs/+", "gw/+/hist/+", "host/+/alarms")


def _lander(site: str) -> _Topics:
    written = (f"host/{site}/state", f"dead/{site}", f"gw/+/cmd/packs/{site}")
    read = (
        *_SHARED,
        "gw/+/birth",
        "gw/+/state",
        "host/+/state",
        f"gw/{site}/cmd/#",
    )
    return written, read


def _coordinator(site: str) -> _Topics:
    written = (
        f"host/{site}/state",
        f"dead/{site}",
        f"host/{site}/alarms",
        f"gw/{site}/obs/+",
        "gw/+/cmd/+",
        "gw/+/settings",
        "source/+",
        "interest/+",
        # What is retained of a gateway is emptied when an operator removes it permanently.
        "gw/+/state",
        "gw/+/birth",
        "gw/+/link/#",
        "q/+/frag/+",
        "q/+/error/+",
        # Rows of the system tables, which it sends as a site does.
        f"q/+/x/+/{site}",
        "host/+/tables",
        "host/+/reports",
    )
    return written, ("#",)


def _viewer(_site: str) -> _Topics:
    read = (
        "gw/+/state",
        "gw/+/birth",
        "gw/+/obs/+",
        "gw/+/hist/+",
        "gw/+/last/+",
        "gw/+/link/#",
        "host/+/state",
        "q/+/out/+",
    )
    return (), read


_TOPICS: Final = {
    SiteKind.GATEWAY: _engine_site,
    SiteKind.BASE: _base,
    SiteKind.STATIC: _static,
    SiteKind.COORDINATOR: _coordinator,
    SiteKind.VIEWER: _viewer,
    SiteKind.LANDER: _lander,
}
