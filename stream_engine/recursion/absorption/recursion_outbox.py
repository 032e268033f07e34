"""Derived rows that belong to other sites, and the messages made of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from stream_engine.operators.rows.operator import RecursiveMessage
from stream_engine.provenance.annotation import AnnotationEncoding
from stream_engine.provenance.dnf import DnfEncoding
from stream_engine.provenance.parts import MAX_BYTES, MAX_ROWS, parts_of
from stream_engine.recursion.absorption.absorption_table import AbsorptionTable, Entry
from stream_engine.recursion.program.packing import (
    MAX_TOKENS,
    PACKED,
    pack_encoded,
    pack_supports,
)
from streamsql.data.types import Row
from streamsql.wire.batch_parts import row_bytes
from streamsql.wire.messages import AnnotatedRow


@dataclass(frozen=True, slots=True)
class RecursiveOutgoing:
    """A message to the same recursion at another site.

    Attributes:
        port: "rows", "leaf:" and the leaf's number, or "copy:" and the copy's; with PACKED behind
            it the rows are packed into one blob.
        annotated: Rows with encoded annotations; they count before the kills.
    """

    site: str
    port: str
    annotated: tuple[AnnotatedRow, ...] = ()
    kills: tuple[int, ...] = ()
    rows: int = 0


def row_count(message: RecursiveMessage) -> int:
    """Return how many rows a message carries."""
    if isinstance(message, RecursiveOutgoing):
        return message.rows
    return len(message.annotated)


class Outbox(AbsorptionTable):
    """What was derived here for the partitions of other sites (MinShip at the sender)."""

    @override
    def absorbed_again(self, entry: Entry, annotation: Any) -> None:
        self.released.append((entry, annotation))

    def take(self) -> list[tuple[Row, Any]]:
        """Return the rows to ship now."""
        released, self.released = self.released, []
        return [(entry.row, annotation) for entry, annotation in released]


_Group = tuple[str, tuple[AnnotatedRow, ...], int]
"""Port, what travels, and how many rows that is."""


class Parcels:
    """Collects rows with encoded annotations per receiver and port, in messages of bounded size."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, list[tuple[Row, Any]]]] = {}
        self._kills: dict[str, list[int]] = {}

    def add(self, site: str, port: str, row: Row, annotation: Any) -> None:
        """Add a row."""
        self._rows.setdefault(site, {}).setdefault(port, []).append((row, annotation))

    def add_kills(self, site: str, kills: list[int]) -> None:
        """Add dead tokens; they travel with the last rows to the same site, or behind them."""
        self._kills.setdefault(site, []).extend(kills)

    def drain(self) -> list[RecursiveOutgoing]:
        """Return and discard all messages."""
        messages: list[RecursiveOutgoing] = []
        for site in dict.fromkeys([*self._rows, *self._kills]):
            groups = [
                group
                for port, rows in self._rows.get(site, {}).items()
                for group in self._groups(port, rows)
            ]
            killed = self._kills.get(site, [])
            kills = [
                tuple(killed[start : start + MAX_ROWS]) for start in range(0, len(killed), MAX_ROWS)
            ]
            for number, (port, rows, count) in enumerate(groups, start=1):
                last = kills.pop(0) if kills and number == len(groups) else ()
                messages.append(RecursiveOutgoing(site, port, rows, last, count))
            messages.extend([RecursiveOutgoing(site, "rows", kills=part) for part in kills])
        self._rows, self._kills = {}, {}
        return messages

    def _groups(self, port: str, rows: list[tuple[Row, Any]]) -> Iterator[_Group]:
        for chunk in parts_of([AnnotatedRow(row, part) for row, part in rows]):
            yield port, chunk, len(chunk)


class PackedParcels(Parcels):
    """Collects rows with annotations, and packs them into bounded blobs; see `packing`.

    Args:
        packed: Whether to pack; without, rows travel as they are.
    """

    def __init__(self, encoding: AnnotationEncoding[Any], *, packed: bool = True) -> None:
        super().__init__()
        self._encoding = encoding
        self._packs = packed

    @override
    def _groups(self, port: str, rows: list[tuple[Row, Any]]) -> Iterator[_Group]:
        encoding = self._encoding
        if not self._packs:
            yield from super()._groups(port, [(row, encoding.encode(part)) for row, part in rows])
        elif isinstance(encoding, DnfEncoding):
            sizes = [encoding.size(part) for _, part in rows]
            for chunk in _bounded(rows, [4 * size for size in sizes], sizes):
                yield port + PACKED, (AnnotatedRow((), pack_supports(chunk)),), len(chunk)
        else:
            encoded = [(row, encoding.encode(part)) for row, part in rows]
            sizes = [len(part) for _, part in encoded]
            for chunk in _bounded(encoded, sizes, [0] * len(sizes)):
                yield port + PACKED, (AnnotatedRow((), pack_encoded(chunk)),), len(chunk)


def _bounded(
    rows: list[tuple[Row, Any]], sizes: list[int], tokens: list[int]
) -> Iterator[list[tuple[Row, Any]]]:
    chunk: list[tuple[Row, Any]] = []
    bytes_left, tokens_left = MAX_BYTES, MAX_TOKENS
    for pair, size, count in zip(rows, sizes, tokens, strict=True):
        added = size + row_bytes(pair[0])
        if chunk and (len(chunk) == MAX_ROWS or added > bytes_left or count > tokens_left):
            yield chunk
            chunk = []
            bytes_left, tokens_left = MAX_BYTES, MAX_TOKENS
        chunk.append(pair)
        bytes_left -= added
        tokens_left -= count
    if chunk:
        yield chunk
