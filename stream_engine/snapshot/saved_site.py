"""A snapshot of a site as bytes, and the state of its sources in it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from stream_engine.site.site_sources import SiteSources
from stream_engine.snapshot.state_places import fill, names, places_of, read
from stream_engine.state.event_log import source_relation
from stream_engine.state.watermark import Watermark
from streamsql.algebra.operators import Scan
from streamsql.errors import DeploymentError
from streamsql.wire.fragments import FragmentBundle

FORMAT = 2
"""Grows whenever saved state of the same shape changes its meaning."""

MOST_AHEAD = 60_000_000
"""Max microseconds that a snapshot may be ahead of the clock."""


class SnapshotError(DeploymentError):
    """A snapshot cannot be used: damaged, of another version, site or time."""

    code = "snapshot_error"


class SavedQuery(msgspec.Struct, frozen=True, array_like=True):
    """A query; without state where it is rebuilt, with the reason where it should have one."""

    bundle: FragmentBundle
    since: int
    state: bytes = b""
    unsaved: str = ""


class SavedSite(msgspec.Struct, frozen=True, array_like=True):
    """A site between two steps.

    Attributes:
        scans: Those whose rows are saved.
        declared: How sources were declared; an earlier version's has none.
        has_units: Whether scans name units; those of earlier versions do not.
    """

    format: int
    site: str
    now: int
    scans: tuple[Scan, ...]
    sources: bytes
    queries: tuple[SavedQuery, ...]
    host: bytes
    declared: tuple[Scan, ...] = ()
    has_units: bool = False


encode_site = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SavedSite).decode


def decode_site(content: bytes, site: str, now: int) -> SavedSite:
    """Return a snapshot, as `encode_site` made it, for a site whose clock says `now`.

    Raises:
        SnapshotError: It cannot be used; says why.
    """
    try:
        version = msgspec.msgpack.decode(content, type=tuple[Any, ...])[:1]
        if version != (FORMAT,):
            raise SnapshotError(f"it has format {version}, this program reads {FORMAT}")
        saved = _decode(content)
    except (msgspec.MsgspecError, ValueError) as error:
        raise SnapshotError(f"it cannot be read: {error}") from error
    if saved.site != site:
        raise SnapshotError(f"it is of site {saved.site!r:.80}, this is {site!r}")
    if saved.now > now + MOST_AHEAD:
        ahead = (saved.now - now) // 1_000_000
        raise SnapshotError(f"its time is {ahead} s ahead of this site's clock")
    return saved


_Parts = tuple[list[str], list[Any]]
"""Names of places and what is there."""


def scans_of(sources: SiteSources) -> tuple[Scan, ...]:
    """Return the scans whose rows are saved, in their order."""
    return tuple(scan for relations in sources.relations.values() for scan in relations)


def saved_sources(sources: SiteSources) -> dict[str, Any]:
    """Return the state of all sources of a site; containers are not copied.

    Raises:
        UnsavableError: There is state where none is expected.
    """
    return {
        "rows": [
            _saved(source_relation(s), sources.relations[s.source][s]) for s in scans_of(sources)
        ],
        "marks": [
            (source, lateness, _saved(Watermark(lateness), mark))
            for source, marks in sources.watermarks.items()
            for lateness, mark in marks.items()
        ],
        "heard": {source: dict(heard) for source, heard in sources.heard.items()},
    }


def check_sources(scans: tuple[Scan, ...], saved: dict[str, Any]) -> None:
    """Refuse state that does not fit, before anything is changed.

    Raises:
        SnapshotError: It is of another version; other values raise arbitrary errors.
    """
    for fresh, parts in _fresh_sources(scans, saved):
        _fill(fresh, fresh, parts)


def restore_sources(sources: SiteSources, scans: tuple[Scan, ...], saved: dict[str, Any]) -> None:
    """Fill the relations that are declared or read here; other saved ones are ignored."""
    for scan, parts in zip(scans, saved["rows"], strict=True):
        relation = sources.relations.get(scan.source, {}).get(scan)
        if relation is not None:
            _fill(relation, source_relation(scan), parts)
    sources.restored()
    for source, lateness, parts in saved["marks"]:
        mark = sources.watermarks.get(source, {}).get(lateness)
        if mark is not None:
            _fill(mark, Watermark(lateness), parts)
    for source, heard in saved.get("heard", {}).items():  # an earlier version's has none
        if source in sources.relations:
            sources.heard[source] = dict(heard)


def _fresh_sources(
    scans: tuple[Scan, ...], saved: dict[str, Any]
) -> Iterator[tuple[object, _Parts]]:
    for scan, parts in zip(scans, saved["rows"], strict=True):
        yield source_relation(scan), parts
    for _source, lateness, parts in saved["marks"]:
        yield Watermark(lateness), parts


def _saved(fresh: object, used: object) -> _Parts:
    places = places_of(fresh)
    return names(places), read(used, places)


def _fill(used: object, fresh: object, saved: _Parts) -> None:
    places = places_of(fresh)
    where, values = saved
    if where != names(places):
        raise SnapshotError(f"a {type(used).__name__} was saved by another version")
    fill(used, places, values)
