"""Messages between a base site and a gateway about packs that may have been lost on the way.

A gateway numbers what it publishes of a stream 0, 1, 2, … in each incarnation, in the order of
publishing. Numbers have no holes, so a base site that lacks one knows it, and asks for the rest.
"""

import msgspec

from streamsql.wire.bounds import Count, Epoch, Name, Time


class PacksWanted(msgspec.Struct, frozen=True, omit_defaults=True):
    """Asks a gateway for what it has published of a stream from a number on.

    Attributes:
        life: The gateway's epoch that the number is of; None: the sender has nothing yet, and only
            asks how many packs there are.
        next: The first number that the sender lacks.
    """

    stream: Name
    life: Epoch | None = None
    next: Count = 0


class PacksPublished(msgspec.Struct, frozen=True):
    """The answer, after the packs themselves, as far as they were sent again.

    Attributes:
        life: The gateway's present epoch.
        first: The first number, from the one that was asked for on, that it still has; `next` if
            there is none. None: the request was about another incarnation.
        next: How many packs it has published in this incarnation.
        newest: No reading in them has a later event time, in microseconds; None: unknown.
    """

    stream: Name
    life: Epoch
    first: Count | None
    next: Count
    newest: Time | None = None


class Interest(msgspec.Struct, frozen=True):
    """Whether anybody reads what gateways publish of a stream; retained, from the coordinator.

    A gateway that has none publishes, and soon.

    Attributes:
        soon: Whether somebody waits for it, as windows at a base site do. The lake does not: for it
            alone packs are collected longer, and compressed.
    """

    wanted: bool
    soon: bool = True
