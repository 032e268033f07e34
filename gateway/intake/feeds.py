"""Which source a reading feeds, and as often as the source says."""

from collections.abc import Mapping
from typing import cast

from gateway.connectors.reading import Reading
from gateway.intake.validation import EventMaker
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.sampling import sampler_of
from streamsql.data.events import SourceEvent


class Feed:
    """One source, and how readings become its events."""

    __slots__ = ("_sampler", "definition", "event")

    def __init__(self, definition: SourceDefinition) -> None:
        self.definition = definition
        self.event = EventMaker(definition).event
        self._sampler = sampler_of(definition)

    def keeps(self, event: SourceEvent) -> bool:
        """Whether the source keeps a reading; see `streamsql.catalog.sampling`."""
        return self._sampler is None or self._sampler.keeps(event)


class Feeds:
    """The sources of a gateway by their names."""

    def __init__(self, definitions: Mapping[str, SourceDefinition]) -> None:
        self._feeds = {name: Feed(definition) for name, definition in definitions.items()}

    def define(self, definitions: Mapping[str, SourceDefinition]) -> None:
        """Feed these sources from now on; those that are as they were sample on."""
        former = self._feeds
        self._feeds = {}
        for name, definition in definitions.items():
            feed = former.get(name)
            if feed is None or feed.definition != definition:
                feed = Feed(definition)
            self._feeds[name] = feed

    def fed_by(self, reading: Reading) -> Feed:
        """Return the source that a reading feeds.

        Raises:
            ValueError: It feeds none.
        """
        source = cast("object", reading.source)  # a connector may give anything
        feed = self._feeds.get(source) if isinstance(source, str) else None
        if feed is None:
            raise ValueError(f"no source {source!r:.60} at this gateway")
        return feed
