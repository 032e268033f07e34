"""The state of a site's sources in a snapshot: their rows and watermarks."""

from collections.abc import Iterator
from typing import Any

from stream_engine.site.site_sources import SiteSources
from stream_engine.snapshot.places import fill, names, places_of, read
from stream_engine.snapshot.saved_site import SnapshotError
from stream_engine.state.event_log import source_relation
from stream_engine.state.watermark import Watermark
from streamsql.algebra.operators import Scan

_Parts = tuple[list[str], list[Any]]
"""Names of places and what is there."""


def scans_of(sources: SiteSources) -> tuple[Scan, ...]:
    """Return the scans whose rows are saved, in their order."""
    return tuple(scan for relations in sources.relations.values() for scan in relations)


def saved_sources(sources: SiteSources) -> dict[str, Any]:
    """Return the state of all sources of a site; containers are not copied.

    Raises:
        UnsavableError: Some state has come to be where none is expected.
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
    """Refuse what does not fit, before anything is changed.

    Raises:
        SnapshotError: It is of another version; what is no such state at all raises what it likes.
    """
    for fresh, parts in _fresh_sources(scans, saved):
        _fill(fresh, fresh, parts)


def restore_sources(sources: SiteSources, scans: tuple[Scan, ...], saved: dict[str, Any]) -> None:
    """Fill the relations that are declared or read here; what others held is of no use."""
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
