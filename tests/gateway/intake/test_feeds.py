"""Readings reach the source of their name, as often as it says."""

import pytest

from gateway.connectors.reading import Reading
from gateway.intake.feeds import Feeds
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

SEAT = Schema.of(("mid", DataType.TEXT), ("weight", DataType.DOUBLE))
MID = Schema.of(("mid", DataType.TEXT))


def defined(name: str, schema: Schema = SEAT, **options: str) -> SourceDefinition:
    return SourceDefinition(
        name, SourceKind.STREAM, schema, key=(0,), options=tuple(options.items())
    )


def test_a_reading_feeds_the_source_of_its_name() -> None:
    sources = [defined("seatsensor"), defined("seen", MID)]
    feeds = Feeds({source.name: source for source in sources})
    reading = Reading("seen", {"mid": "m1"}, 5)
    feed = feeds.fed_by(reading)
    assert (feed.definition.name, feed.event(reading, 9).row) == ("seen", ("m1",))
    with pytest.raises(ValueError, match="no source 'other'"):
        feeds.fed_by(Reading("other", {"mid": "m1"}))


def test_samples() -> None:
    sources = [defined("often"), defined("seldom", sample="5 s")]
    feeds = Feeds({source.name: source for source in sources})
    often, seldom = (feeds.fed_by(Reading(name, {"mid": "m1"})) for name in ("often", "seldom"))
    events = [SourceEvent(("m1", 1.0), second * 1_000_000) for second in range(11)]
    assert sum(often.keeps(event) for event in events) == 11
    assert [e.ts // 1_000_000 for e in events if seldom.keeps(e)] == [0, 5, 10]
