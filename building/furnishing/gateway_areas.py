"""Which gateway owns which rooms, and which radio motes hear each other."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import hypot
from typing import Final

from building.model.site_model import STOREY_HEIGHT, Mote, RadioLink, Site, SiteError, SpaceKind

MAX_GATEWAYS: Final = 64

RADIO_RANGE: Final = 20.0
"""Metres a mote is heard on its own level."""

RANGE_THROUGH_SLAB: Final = 6.0
"""Metres a mote is heard on the next level, measured in space."""


NEIGHBOURS: Final = 5
"""Entries of a mote's neighbour table."""

UNBALANCED: Final = 1.5
"""Times the mean load above which an area is too large to keep levels whole."""


def assign_gateways(site: Site, gateways: int) -> Site:
    """Return the site with every room assigned to one of `gw-1` … `gw-N`, and its radio links.

    Where there are no rooms the motes are assigned, and their links are kept.

    A gateway's rooms are neighbours: whole levels where there are fewer gateways than levels,
    else slices of one level from left to right, with about equally many sensors each. Where
    levels differ so much that this would overload a gateway, slices go on over levels.

    Raises:
        SiteError: The number of gateways is not within 1..64, or there are fewer rooms.
    """
    if not site.spaces:
        return _assign_motes(site, gateways)
    rooms = [space for space in site.spaces if space.kind is not SpaceKind.OUTSIDE]
    check_gateways(gateways, len(rooms), "rooms")
    sensors = Counter(sensor.room for sensor in site.sensors)
    weights = {room.id: 1 + sensors[room.id] for room in rooms}
    by_level = [
        sorted(
            (room for room in rooms if room.level == level.ordinal),
            key=lambda room: (room.polygon.centroid.x, room.id),
        )
        for level in site.levels
    ]
    ids = [[room.id for room in on_level] for on_level in by_level if on_level]
    areas = _areas(ids, weights, gateways)
    heaviest = max(sum(weights[room] for room in area) for area in areas)
    if heaviest > UNBALANCED * sum(weights.values()) / gateways:
        areas = split_evenly([room for level in ids for room in level], weights, gateways)
    owner = {room: f"gw-{n}" for n, area in enumerate(areas, start=1) for room in area}
    return replace(site, gateways=owner, radio=tuple(radio_links(site.motes)))


def _assign_motes(site: Site, gateways: int) -> Site:
    check_gateways(gateways, len(site.motes), "nodes")
    swept = [mote.id for mote in sorted(site.motes, key=lambda mote: (mote.x, mote.id))]
    runs = split_evenly(swept, dict.fromkeys(swept, 1), gateways)
    return replace(
        site, gateways={mote: f"gw-{n}" for n, run in enumerate(runs, start=1) for mote in run}
    )


def check_gateways(gateways: int, owned: int, what: str) -> None:
    """Refuse a number of gateways that cannot be served.

    Raises:
        SiteError: It is not within 1..64, or more than there are things to own.
    """
    if not 1 <= gateways <= MAX_GATEWAYS:
        raise SiteError(f"{gateways} gateways asked for; 1 to {MAX_GATEWAYS} are possible")
    if gateways > owned:
        raise SiteError(
            f"{gateways} gateways asked for, but the site has only {owned} {what}",
            hint="start fewer gateways",
        )


def radio_links(motes: Sequence[Mote]) -> list[RadioLink]:
    """Return the pairs of motes that keep a link, one entry a pair.

    A pair in range keeps a link when either has the other among its nearest, as motes have room
    for few neighbours in their tables.
    """
    heard: dict[str, list[tuple[float, int, int]]] = {mote.id: [] for mote in motes}
    for i, a in enumerate(motes):
        for j in range(i + 1, len(motes)):
            b = motes[j]
            storeys = abs(a.level - b.level)
            reach = (RADIO_RANGE, RANGE_THROUGH_SLAB)[storeys] if storeys < 2 else 0.0
            metres = hypot(a.x - b.x, a.y - b.y, storeys * STOREY_HEIGHT)
            if metres <= reach:
                heard[a.id].append((metres, i, j))
                heard[b.id].append((metres, i, j))
    kept = {pair for pairs in heard.values() for pair in sorted(pairs)[:NEIGHBOURS]}
    ordered = sorted(kept, key=lambda pair: pair[1:])
    return [RadioLink(motes[i].id, motes[j].id, round(metres, 3)) for metres, i, j in ordered]


def split_evenly(items: Sequence[str], weights: Mapping[str, int], parts: int) -> list[list[str]]:
    """Cut a sequence into non-empty runs of about equal weight.

    Examples:
        >>> split_evenly(["a", "b", "c"], {"a": 1, "b": 1, "c": 2}, 2)
        [['a', 'b'], ['c']]
    """
    total = sum(weights[item] for item in items)
    runs: list[list[str]] = [[]]
    done = 0
    for index, item in enumerate(items):
        enough = done + weights[item] / 2 > total * len(runs) / parts
        needed = parts - len(runs) == len(items) - index
        if runs[-1] and len(runs) < parts and (enough or needed):
            runs.append([])
        runs[-1].append(item)
        done += weights[item]
    return runs


def _areas(
    levels: Sequence[Sequence[str]], weights: Mapping[str, int], gateways: int
) -> list[list[str]]:
    if gateways <= len(levels):
        names = [str(index) for index in range(len(levels))]
        sums = {name: sum(weights[r] for r in levels[int(name)]) for name in names}
        runs = split_evenly(names, sums, gateways)
        return [[room for name in run for room in levels[int(name)]] for run in runs]
    shares = [1] * len(levels)
    loads = [sum(weights[room] for room in level) for level in levels]
    for _ in range(gateways - len(levels)):
        open_levels = [i for i, level in enumerate(levels) if shares[i] < len(level)]
        busiest = max(open_levels, key=lambda i: loads[i] / shares[i])
        shares[busiest] += 1
    return [
        run
        for level, share in zip(levels, shares, strict=True)
        for run in split_evenly(level, weights, share)
    ]
