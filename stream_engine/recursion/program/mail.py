"""What the sites of a recursion with provenance write to each other, by port.

A port names a table at the receiver: "rows" of the view that are at home there, "leaf:3" for rows
of leaf 3, "copy:0" for copies of view rows. Inside a site the tables have numbers: RECURSIVE, the
leaves, and the copies behind them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding, least_supports
from stream_engine.provenance.dnf import DnfEncoding
from stream_engine.recursion.program.packing import PACKED, unpack
from stream_engine.recursion.program.rules import RECURSIVE
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.messages import AnnotatedRow

ROWS_PORT = "rows"
_LEAF, _COPY = "leaf:", "copy:"


class Ports:
    """The ports of one recursion."""

    def __init__(self, name: str, leaf_widths: Sequence[int], copies: int, width: int) -> None:
        self._name = name
        self._number = {ROWS_PORT: RECURSIVE}
        self._widths = {RECURSIVE: width}
        for leaf, columns in enumerate(leaf_widths):
            self._enter(f"{_LEAF}{leaf}", leaf, columns)
        for copy in range(copies):
            self._enter(f"{_COPY}{copy}", len(leaf_widths) + copy, width)
        self._port = {number: port for port, number in self._number.items()}

    def _enter(self, port: str, number: int, width: int) -> None:
        self._number[port] = number
        self._widths[number] = width

    def name_of(self, table: int) -> str:
        """Return the port of a table."""
        return self._port[table]

    def open(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow]
    ) -> tuple[int, list[tuple[Row, Any]]]:
        """Return the table that rows are for, and the rows with their supports or encodings.

        Raises:
            WireError: The port is unknown, or a group or row is malformed.
        """
        table = self._number.get(port.removesuffix(PACKED))
        if table is None:
            raise WireError(f"{sender}: recursion {self._name} has no port {port!r:.40}")
        rows = list(_unpacked(annotated) if port.endswith(PACKED) else _single(annotated))
        width = self._widths[table]
        for row, _ in rows:
            if len(row) != width:
                raise WireError(f"{sender}, port {port}: {len(row)} columns instead of {width}")
        return table, rows


def _single(annotated: Sequence[AnnotatedRow]) -> Iterator[tuple[Row, Any]]:
    return ((row.row, row.annotation) for row in annotated)


def _unpacked(annotated: Sequence[AnnotatedRow]) -> Iterator[tuple[Row, Any]]:
    for group in annotated:
        yield from zip(*unpack(group.annotation), strict=True)


def decoded(encoding: AnnotationEncoding[Any], part: Any) -> Any:
    """Return the annotation of supports or an encoding as they were received.

    Raises:
        WireError: It is malformed.
    """
    if isinstance(part, bytes):
        return encoding.decode(part)
    if not isinstance(encoding, DnfEncoding):
        raise WireError("packed rows: supports are listed, but are encoded otherwise here")
    return part if len(part) == 1 else least_supports(part)
