"""Which sources a wrapper's reading feeds: by their names or topics, and as often as they say."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from gateway.wrappers.wrapper import Reading
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.sampling import Sampler, sampler_of
from streamsql.data.events import SourceEvent


class Feeds:
    """The sources of a gateway by what feeds them.

    A source is fed by readings of its own name, or of its `topic` where it has one; several may
    share a topic, and each takes the columns it has.
    """

    def __init__(self, definitions: Mapping[str, SourceDefinition]) -> None:
        self._fed: dict[str, list[SourceDefinition]] = {}
        self._samplers: dict[str, Sampler] = {}
        for definition in definitions.values():
            topic = definition.option("topic")
            stream = definition.name if topic is None else topic.strip().lower()
            self._fed.setdefault(stream, []).append(definition)
            sampler = sampler_of(definition)
            if sampler is not None:
                self._samplers[definition.name] = sampler

    def of(self, reading: Reading) -> Iterator[tuple[SourceDefinition, Reading]]:
        """Yield the sources that a reading feeds, each with the reading as it takes it.

        Raises:
            ValueError: It feeds none.
        """
        source = cast("object", reading.source)
        fed = self._fed.get(source) if isinstance(source, str) else None
        if not fed:
            raise ValueError(f"no source {source!r:.60} at this gateway")
        for definition in fed:
            given = cast("object", reading.values)  # a wrapper may give anything: refused later
            if definition.option("topic") is None or not isinstance(given, Mapping):
                yield definition, reading
                continue
            names = definition.schema.names
            values = {name: value for name, value in given.items() if name in names}
            yield definition, replace(reading, values=values)

    def keeps(self, definition: SourceDefinition, event: SourceEvent) -> bool:
        """Whether a source keeps a reading; see `streamsql.catalog.sampling`."""
        sampler = self._samplers.get(definition.name)
        return sampler is None or sampler.keeps(event)
