"""The rows of a fragment of one query, handed on to the queries of its site that read it."""

from collections.abc import Callable
from itertools import count

from stream_engine.exchange.channel_inbox import Reader
from stream_engine.exchange.filter_bank import FAILURES, FilterBank
from streamsql.algebra.expressions import TRUE, conjunction
from streamsql.algebra.scalar_functions.scalar import compile_filter
from streamsql.data.delta import Delta
from streamsql.wire.bundles.needed_rows import NeededRows
from streamsql.wire.bundles.reader_conditions import RowCondition, predicate_of, term_of

FEW = 4
"""Different filters that are evaluated one after the other, where these are all there are.

A change of one row then takes 2 to 4 µs less than with a bank.
"""

_Kept = Callable[[Delta], Delta]
"""Returns the rows for which a predicate is TRUE."""

_Key = tuple[RowCondition | None, str]
"""By which rows are found, and the text of the predicate: the same ones keep the same rows."""


class _Alike:
    """The readers that need the same rows.

    Attributes:
        name: Of the group.
        key: By which it is found.
        readers: Their functions by their names.
    """

    __slots__ = ("_kept", "_needed", "_whole", "key", "name", "readers")

    def __init__(self, name: str, key: _Key, needed: NeededRows) -> None:
        self.name = name
        self.key = key
        self.readers: dict[str, Reader] = {}
        self._needed = needed
        self._kept = None if needed.predicate is None else compile_filter(needed.predicate)
        self._whole: _Kept | None = None

    def give(self, part: Delta, ts: int | None) -> None:
        """Give the readers what their predicate keeps of rows that the bank has found."""
        self._give(part if self._kept is None else _rows(self._kept, part), ts)

    def give_needed(self, delta: Delta, ts: int | None) -> None:
        """Give the readers what their condition and predicate keep of a change."""
        condition, predicate = self._needed.condition, self._needed.predicate
        if condition is None:
            self.give(delta, ts)
            return
        if self._whole is None:
            parts = [predicate_of(condition), *([] if predicate is None else [predicate])]
            self._whole = compile_filter(conjunction(parts) or TRUE)
        self._give(_rows(self._whole, delta), ts)

    def _give(self, rows: Delta, ts: int | None) -> None:
        if rows:
            for give in self.readers.values():
                give(rows, ts)


def _rows(kept: _Kept, part: Delta) -> Delta:
    try:
        return kept(part)
    except FAILURES:
        return part  # they fail at their own step, and stop none but themselves


class FedPort:
    """Hands each change on to the readers that may need some of it.

    A reader whose plan would drop a row at once does not get the row, and nothing at all if there
    is no other: ten thousand filters over a relation then cost as much as those that let it pass.

    Work: of a change, that of the bank, and one evaluation for each row and distinct predicate of
    the readers that the bank finds, or that have a predicate but no condition. Readers that get
    nothing cost nothing but this. A few are evaluated without the bank.
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
            alike = self._alike[key] = _Alike(str(next(self._count)), key, needed)
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
        if len(self._alike) <= FEW:
            for alike in self._alike.values():
                alike.give_needed(delta, ts)
            return
        for alike in self._every:
            alike.give(delta, ts)
        if self._bank:
            for names, part in self._bank.parts(delta):
                for name in names:
                    self._names[name].give(part, ts)
