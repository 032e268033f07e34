"""The rows of a fragment of one query, handed on to the queries of its site that read it."""

from collections.abc import Callable
from itertools import count

from stream_engine.exchange.channel_inbox import Reader
from stream_engine.exchange.filter_bank import FAILURES, FilterBank
from streamsql.algebra.scalar_functions.scalar import compile_filter
from streamsql.data.delta import Delta
from streamsql.wire.bundles.needed_rows import NeededRows, RowCondition, term_of

_Key = tuple[RowCondition | None, str]
"""By which rows are found, and the text of the predicate: the same ones keep the same rows."""


class _Alike:
    """The readers that need the same rows.

    Attributes:
        name: Of the group.
        key: By which it is found.
        kept: Returns what their predicate keeps; None: there is none.
        readers: Their functions by their names.
    """

    __slots__ = ("kept", "key", "name", "readers")

    def __init__(self, name: str, key: _Key, kept: Callable[[Delta], Delta] | None) -> None:
        self.name = name
        self.key = key
        self.kept = kept
        self.readers: dict[str, Reader] = {}

    def give(self, part: Delta, ts: int | None) -> None:
        """Give the readers what their predicate keeps of a part, evaluated once."""
        rows = self._of(part)
        if rows:
            for give in self.readers.values():
                give(rows, ts)

    def _of(self, part: Delta) -> Delta:
        if self.kept is None:
            return part
        try:
            return self.kept(part)
        except FAILURES:
            return part  # they fail at their own step, and stop none but themselves


class FedPort:
    """Hands each change on to the readers that may need some of it.

    A reader whose plan would drop a row at once does not get the row, and nothing at all if there
    is no other: ten thousand filters over a relation then cost as much as those that let it pass.

    Work: of a change, that of the bank, and one evaluation for each row and distinct predicate of
    the readers that the bank finds, or that have a predicate but no condition. Readers that get
    nothing cost nothing but this.
    """

    __slots__ = ("_alike", "_bank", "_count", "_every", "_names", "_readers")

    def __init__(self) -> None:
        self._readers: dict[str, _Alike] = {}
        self._alike: dict[_Key, _Alike] = {}
        self._names: dict[str, _Alike] = {}  # of those that the bank finds, by their names there
        self._every: dict[_Alike, None] = {}  # those that are asked, or given, every row
        self._bank = FilterBank()
        self._count = count()

    @property
    def is_read(self) -> bool:
        """Whether there is a reader."""
        return bool(self._readers)

    def add(self, reader: str, give: Reader, needed: NeededRows) -> None:
        """Give changes to a reader that is not there.

        Args:
            reader: Its name.
            give: Takes its part of a change, which it must not alter.
            needed: Of which rows.
        """
        condition, predicate = needed.condition, needed.predicate
        key = condition, "" if predicate is None else term_of(predicate).text
        alike = self._alike.get(key)
        if alike is None:
            kept = None if predicate is None else compile_filter(predicate)
            alike = self._alike[key] = _Alike(str(next(self._count)), key, kept)
            if condition is None:
                self._every[alike] = None
            else:
                self._bank.add(alike.name, condition)
                self._names[alike.name] = alike
        alike.readers[reader] = give
        self._readers[reader] = alike

    def remove(self, reader: str) -> None:
        """Give a reader no more; nothing happens if it is not there."""
        alike = self._readers.pop(reader, None)
        if alike is None:
            return
        del alike.readers[reader]
        if not alike.readers:
            del self._alike[alike.key]
            self._every.pop(alike, None)
            self._names.pop(alike.name, None)
            self._bank.remove(alike.name)

    def __call__(self, delta: Delta, ts: int | None) -> None:
        """Hand a change on; `ts` is the time of the oldest reading behind it."""
        for alike in self._every:
            alike.give(delta, ts)
        if self._bank:
            for names, part in self._bank.parts(delta):
                for name in names:
                    self._names[name].give(part, ts)
