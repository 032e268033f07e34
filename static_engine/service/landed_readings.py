"""The pipeline behind a static engine, which keeps what is landed."""

from typing import Protocol

from streamsql.catalog.definitions import SourceDefinition
from streamsql.wire.site_messages import PipelineState
from streamsql.wire.source_orders import decode_order
from streamsql.wire.topics import Topics, text_of_level


class Pipeline(Protocol):
    """The pipeline as the engine needs it; its methods may be called by any thread."""

    def state(self) -> PipelineState:
        """Return what it does."""

    def learn_order(self, definition: SourceDefinition) -> None:
        """Take a definition of the catalog."""


def definition_topics(pipeline: Pipeline | None, topics: Topics) -> tuple[str, ...]:
    """Return the topics of definitions by which packs are read; births are landed like packs."""
    return () if pipeline is None else (topics.source(),)


def learn_definition(pipeline: Pipeline | None, level: str, payload: bytes) -> None:
    """Take an order of the catalog.

    Args:
        pipeline: Who reads packs by it; None: nobody does.
        level: Of its topic, with the name of the source.
        payload: Empty when it is over: packs of it may follow still.

    Raises:
        WireError: It cannot be read.
    """
    if pipeline is not None and payload:
        pipeline.learn_order(decode_order(text_of_level(level), payload))
