"""Which sources a wrapper's reading feeds: by their names or topics, and as often as they say."""

from collections.abc import Mapping, Sequence
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
        self.event = EventMaker(definition, picks=_topic(definition) is not None).event
        self._sampler = sampler_of(definition)

    def keeps(self, event: SourceEvent) -> bool:
        """Whether the source keeps a reading; see `streamsql.catalog.sampling`."""
        return self._sampler is None or self._sampler.keeps(event)


class Feeds:
    """The sources of a gateway by what feeds them.

    A source is fed by readings of its own name, or of its `topic` where it has one; several may
    share a topic, and each takes the columns it has. The topic of a declared source is its
    connector's affair.
    """

    def __init__(self, definitions: Mapping[str, SourceDefinition]) -> None:
        self._feeds = {name: Feed(definition) for name, definition in definitions.items()}
        self._fed: dict[str, list[Feed]] = {}
        self._group()

    def define(self, definitions: Mapping[str, SourceDefinition]) -> None:
        """Feed these sources from now on; those that are as they were sample on."""
        former = self._feeds
        self._feeds = {}
        for name, definition in definitions.items():
            feed = former.get(name)
            if feed is None or feed.definition != definition:
                feed = Feed(definition)
            self._feeds[name] = feed
        self._group()

    def _group(self) -> None:
        """Find the sources by what feeds them."""
        self._fed = {}
        for feed in self._feeds.values():
            topic = _topic(feed.definition)
            stream = feed.definition.name if topic is None else topic.strip().lower()
            self._fed.setdefault(stream, []).append(feed)

    def fed_by(self, reading: Reading) -> Sequence[Feed]:
        """Return the sources that a reading feeds.

        Raises:
            ValueError: It feeds none.
        """
        source = cast("object", reading.source)  # a wrapper may give anything
        fed = self._fed.get(source) if isinstance(source, str) else None
        if not fed:
            raise ValueError(f"no source {source!r:.60} at this gateway")
        return fed


def _topic(definition: SourceDefinition) -> str | None:
    """Return the name under which wrappers publish what feeds a source, if it is not its own."""
    return definition.option("topic") if definition.mapping is None else None
