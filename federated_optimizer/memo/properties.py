"""Properties that are asked of a group."""

import enum
from dataclasses import dataclass

from federated_optimizer.alternatives.method import Method

Joined = tuple[tuple[int, Method], ...]
"""Joins that gateways compute with rows of other gateways: the group of each, and its method."""


Sent = tuple[tuple[str, ...], tuple[int, ...], tuple[tuple[str, int], ...]]
"""The way of rows to other sites: these, columns by whose hash they go, and homes."""


class Place(enum.StrEnum):
    """Places of the rows of a group.

    SITES: each where it comes from. BASE: at the base sites.
    """

    SITES = "sites"
    BASE = "base"


class Time(enum.StrEnum):
    """When the rows of a group hold.

    LIVE: now, with every change. SNAPSHOT: as stored tables had them when they were read.
    """

    LIVE = "live"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class Properties:
    """Place, time and partitioning of the rows that are asked for.

    Attributes:
        joined: Joins below after which rows of gateways lie otherwise than where they come from.
        sent: Where rows of gateways have been sent. Who reads them there pays for their way once.
    """

    place: Place
    time: Time = Time.LIVE
    joined: Joined = ()
    sent: Sent | None = None


AT_SITES = Properties(Place.SITES)
AT_BASE = Properties(Place.BASE)
STORED = Properties(Place.SITES, Time.SNAPSHOT)
