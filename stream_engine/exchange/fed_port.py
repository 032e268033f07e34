"""The rows of a fragment of one query, handed on to the queries of its site that read it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from sys import intern

from stream_engine.exchange.channel_inbox import Reader
from stream_engine.exchange.filter_bank import FilterBank
from streamsql.algebra.scalar_functions.scalar import compile_filter
from streamsql.data.delta import Delta
from streamsql.errors import FederationError
from streamsql.wire.bundles.needed_rows import NeededRows

FAILURES = (ArithmeticError, FederationError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors with which a predicate may fail."""


@dataclass(frozen=True, slots=True)
class _Reading:
    give: Reader
    kept: Callable[[Delta], Delta] | None
    text: str  # of the predicate; the same text keeps the same rows


class FedPort:
    """Hands each change on to the readers that may need some of it.

    A reader whose plan would drop a row at once does not get the row, and nothing at all if there
    is no other: ten thousand filters over a relation then cost as much as those that let it pass.

    Work: of a change, that of the bank, and one evaluation for each row and distinct predicate of
    the readers that the bank finds, or that have a predicate but no condition.
    """

    __slots__ = ("_bank", "_every", "_readings")

    def __init__(self) -> None:
        self._readings: dict[str, _Reading] = {}
        self._every: dict[str, None] = {}  # those that are asked, or given, every row
        self._bank = FilterBank()

    @property
    def is_read(self) -> bool:
        """Whether there is a reader."""
        return bool(self._readings)

    def add(self, reader: str, give: Reader, needed: NeededRows) -> None:
        """Give changes to a reader that is not there.

        Args:
            reader: Its name.
            give: Takes its part of a change, which it must not alter.
            needed: Of which rows.
        """
        predicate = needed.predicate
        if predicate is None:
            self._readings[reader] = _Reading(give, None, "")
        else:
            text = intern(repr(predicate))
            self._readings[reader] = _Reading(give, compile_filter(predicate), text)
        if needed.condition is None:
            self._every[reader] = None
        else:
            self._bank.add(reader, needed.condition)

    def remove(self, reader: str) -> None:
        """Give a reader no more; nothing happens if it is not there."""
        self._readings.pop(reader, None)
        self._every.pop(reader, None)
        self._bank.remove(reader)

    def __call__(self, delta: Delta, ts: int | None) -> None:
        """Hand a change on; `ts` is the time of the oldest reading behind it."""
        if self._every:
            self._give(self._every, delta, ts)
        if self._bank:
            for readers, part in self._bank.parts(delta):
                self._give(readers, part, ts)

    def _give(self, readers: Iterable[str], part: Delta, ts: int | None) -> None:
        """Give readers what their predicates keep of a part; each predicate is evaluated once."""
        kept = {"": part}
        for reader in readers:
            reading = self._readings[reader]
            rows = kept.get(reading.text)
            if rows is None:
                rows = kept[reading.text] = _kept(reading, part)
            if rows:
                reading.give(rows, ts)


def _kept(reading: _Reading, part: Delta) -> Delta:
    if reading.kept is None:
        return part
    try:
        return reading.kept(part)
    except FAILURES:
        return part  # it fails at its own step, and stops none but itself
