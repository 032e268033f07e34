"""A generator of auction events of our own, with Nexmark's shape.

Of 50 events one is a person, three are auctions and 46 are bids. Half of the bids go to few hot
auctions and come from few hot bidders. Times rise by a fixed step, so no two events are of one
instant.
"""

import random
from collections.abc import Iterator
from typing import Any

Event = tuple[str, tuple[Any, ...]]
"""Source and row."""

STEP = 1_000
"""Microseconds between two events: a thousand events a second."""
START = 1_700_000_000_000_000 // 86_400_000_000 * 86_400_000_000
CHANNELS = ("Google", "Facebook", "Baidu", "Apple", *(f"channel-{n}" for n in range(40)))
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Seattle", "Kent")
_OF = 50
_AUCTIONS = 3
_HOT = 100
_IN_FLIGHT = 1_000
_LASTS = 20_000_000


def events(count: int, seed: int = 1, first: int = 0) -> Iterator[Event]:
    """Yield events in order of time.

    Args:
        count: How many.
        seed: Of what is random.
        first: Number of the first event; earlier ones are made and dropped, so that two calls
            continue each other.
    """
    draw = random.Random(seed)
    persons = auctions = 0
    for number in range(first + count):
        ts = START + number * STEP
        place = number % _OF
        if place == 0:
            persons += 1
            event: Event = ("person", _person(draw, persons, ts))
        elif place <= _AUCTIONS:
            auctions += 1
            event = ("auction", _auction(draw, auctions, persons, ts))
        else:
            event = ("bid", _bid(draw, auctions, persons, ts))
        if number >= first:
            yield event


def _person(draw: random.Random, number: int, ts: int) -> tuple[Any, ...]:
    name = f"{draw.choice('ABCDEFGH')}. {draw.choice('KLMNOP')}son"
    card = f"{draw.randrange(10**16):016}"
    city, state = draw.choice(CITIES), draw.choice(STATES)
    return (number, name, f"p{number}@example.org", card, city, state, ts, _extra(draw))


def _auction(draw: random.Random, number: int, persons: int, ts: int) -> tuple[Any, ...]:
    initial = draw.randrange(1, 10_000)
    reserve = initial + draw.randrange(1, 10_000)
    expires = ts + draw.randrange(1_000_000, _LASTS)
    seller = _recent(draw, persons)
    category = 10 + draw.randrange(5)
    item = f"item {number % 977}"
    return (number, item, _extra(draw), initial, reserve, ts, expires, seller, category, "")


def _bid(draw: random.Random, auctions: int, persons: int, ts: int) -> tuple[Any, ...]:
    auction = _recent(draw, auctions)
    bidder = _recent(draw, persons)
    price = int(10 ** (draw.random() * 5 + 1))
    channel = draw.choice(CHANNELS)
    url = f"https://example.org/{channel}/item.htm?query=1&channel_id={draw.randrange(1_000)}"
    return (auction, bidder, price, channel, url, ts, _extra(draw))


def _recent(draw: random.Random, last: int) -> int:
    """Return one of the last numbers, often a hot one."""
    if draw.random() < 0.5:
        return max(last // _HOT * _HOT, 1)
    return max(last - draw.randrange(min(last, _IN_FLIGHT)), 1)


def _extra(draw: random.Random) -> str:
    return "".join(draw.choices("abcdefghij", k=8))
