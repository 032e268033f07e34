"""The result of one query, handed on to the queries of its site that read it."""

from stream_engine.exchange.channel_inbox import Reader
from streamsql.data.delta import Delta


class ResultPort:
    """Hands each change of a result fragment on to its readers.

    Attributes:
        readers: By key, in the order in which they came.
    """

    __slots__ = ("readers",)

    def __init__(self) -> None:
        self.readers: dict[str, Reader] = {}

    def __call__(self, delta: Delta, ts: int | None) -> None:
        """Give a change to every reader."""
        for give in self.readers.values():
            give(delta, ts)
