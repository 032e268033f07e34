"""Properties that are asked of a group."""

import enum
from dataclasses import dataclass


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
    """Place and time of the rows that are asked for."""

    place: Place
    time: Time = Time.LIVE


AT_SITES = Properties(Place.SITES)
AT_BASE = Properties(Place.BASE)
STORED = Properties(Place.SITES, Time.SNAPSHOT)
