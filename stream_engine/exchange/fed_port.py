"""The rows of a fragment of one query, handed on to the queries of its site that read it."""

from stream_engine.exchange.channel_inbox import Reader
from stream_engine.exchange.filter_bank import FilterBank
from stream_engine.exchange.needed_rows import RowCondition
from streamsql.data.delta import Delta


class FedPort:
    """Hands each change on to the readers that may need some of it.

    A reader whose plan would drop a row at once does not get the row, and nothing at all if there
    is no other: ten thousand filters over a relation then cost as much as those that let it pass.
    """

    __slots__ = ("_all", "_bank", "_some")

    def __init__(self) -> None:
        self._all: dict[str, Reader] = {}
        self._some: dict[str, Reader] = {}
        self._bank = FilterBank()

    @property
    def is_read(self) -> bool:
        """Whether there is a reader."""
        return bool(self._all or self._some)

    def add(self, reader: str, give: Reader, condition: RowCondition | None) -> None:
        """Give changes to a reader that is not there.

        Args:
            reader: Its name.
            give: Takes its part of a change, which it must not alter.
            condition: What a row fulfils that it may need; None: it needs all.
        """
        if condition is None:
            self._all[reader] = give
        else:
            self._some[reader] = give
            self._bank.add(reader, condition)

    def remove(self, reader: str) -> None:
        """Give a reader no more."""
        self._all.pop(reader, None)
        if self._some.pop(reader, None) is not None:
            self._bank.remove(reader)

    def __call__(self, delta: Delta, ts: int | None) -> None:
        """Hand a change on; `ts` is the time of the oldest reading behind it."""
        for give in self._all.values():
            give(delta, ts)
        if self._some:
            for reader, part in self._bank.parts(delta).items():
                self._some[reader](part, ts)
