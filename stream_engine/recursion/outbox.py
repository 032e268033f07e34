"""Derived rows that belong to other sites, and the messages made of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stream_engine.recursion.absorption import AbsorptionTable, Entry
from streamsql.data.types import Row
from streamsql.wire.channels import row_bytes
from streamsql.wire.messages import AnnotatedRow

MAX_ROWS = 5_000
MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class RecursiveOutgoing:
    """A message to the same recursion at another site.

    Attributes:
        site: Receiver.
        port: "rows", or "leaf:" and the leaf's number.
        annotated: Rows with encoded annotations; they count before the kills.
        kills: Tokens that died.
    """

    site: str
    port: str
    annotated: tuple[AnnotatedRow, ...] = ()
    kills: tuple[int, ...] = ()


class Outbox(AbsorptionTable):
    """What was derived here for the partitions of other sites (MinShip at the sender)."""

    def absorbed_again(self, entry: Entry, annotation: Any) -> None:
        """Ship it all the same: only ship-all asks."""
        self.released.append((entry, annotation))

    def take(self) -> list[tuple[Row, Any]]:
        """Return the rows to ship now."""
        released, self.released = self.released, []
        return [(entry.row, annotation) for entry, annotation in released]


class Parcels:
    """Collects rows per receiver and port and packs them into bounded messages."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], list[AnnotatedRow]] = {}
        self._kills: dict[str, list[int]] = {}

    def add(self, site: str, port: str, row: Row, annotation: bytes) -> None:
        """Add a row."""
        self._rows.setdefault((site, port), []).append(AnnotatedRow(row, annotation))

    def add_kills(self, site: str, kills: list[int]) -> None:
        """Add dead tokens; they travel behind the rows of the same site."""
        self._kills.setdefault(site, []).extend(kills)

    def drain(self) -> list[RecursiveOutgoing]:
        """Return all messages and forget them."""
        messages = [
            RecursiveOutgoing(site, port, chunk)
            for (site, port), rows in self._rows.items()
            for chunk in _chunks(rows)
        ]
        for site, kills in self._kills.items():
            for start in range(0, len(kills), MAX_ROWS):
                part = tuple(kills[start : start + MAX_ROWS])
                messages.append(RecursiveOutgoing(site, "rows", kills=part))
        self._rows, self._kills = {}, {}
        return messages


def _chunks(rows: list[AnnotatedRow]) -> Iterator[tuple[AnnotatedRow, ...]]:
    chunk: list[AnnotatedRow] = []
    size = 0
    for row in rows:
        added = len(row.annotation) + row_bytes(row.row)
        if chunk and (len(chunk) == MAX_ROWS or size + added > MAX_BYTES):
            yield tuple(chunk)
            chunk, size = [], 0
        chunk.append(row)
        size += added
    if chunk:
        yield tuple(chunk)
