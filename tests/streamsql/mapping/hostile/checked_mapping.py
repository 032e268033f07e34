"""What must hold of every payload, whatever it is."""

from collections.abc import Iterable, Mapping

import msgspec

from streamsql.data.types import EARLIEST, LATEST, DataType, Value, conforms
from streamsql.mapping.mapper import MAX_PROBLEM_TEXT, MAX_PROBLEMS, Mapped
from streamsql.mapping.payloads.payload_reader import MAX_ROWS
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.sources import Columns, mapper

ARRIVAL = 1_700_000_000_000_000
FACTS: dict[str, Value] = {"topic": "a/b", "device": "b", "retained": False}

_ROWS = {
    PayloadFormat.JSON: "rows[*]",
    PayloadFormat.CBOR: "rows",
    PayloadFormat.XML: "row",
    PayloadFormat.HTML: "table tr",
}


class Counts(msgspec.Struct):
    """What became of payloads."""

    payloads: int = 0
    rows: int = 0
    refused: int = 0
    problems: int = 0
    ignored: int = 0

    def add(self, mapped: Mapped) -> None:
        """Count what a payload has become."""
        self.payloads += 1
        self.rows += len(mapped.rows)
        self.refused += mapped.refused
        self.problems += bool(mapped.problems)
        self.ignored += mapped.ignored

    def __add__(self, other: "Counts") -> "Counts":
        """Return the sums."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Counts(*(one + more for one, more in pairs))


def columns_of(form: PayloadFormat, *, with_rows: bool) -> Columns:
    """Return columns of every type with every clause, by paths of the format."""
    plain = form not in _ROWS
    text = form == PayloadFormat.TEXT
    clauses: Columns = {
        "device": (DataType.TEXT, ColumnMapping("@device" if with_rows else "")),
        "d": (DataType.DOUBLE, ColumnMapping(unit_in="degF", unit="Cel")),
        "i": (DataType.INTEGER, ColumnMapping(scale=0.1, offset=-40)),
        "b": (DataType.BOOLEAN, ColumnMapping(values=(("ON", True), ("1", False)))),
        "t": (DataType.TEXT, ColumnMapping()),
        "hex": (DataType.INTEGER, ColumnMapping(format="hex")),
        "comma": (DataType.DOUBLE, ColumnMapping(format="comma")),
        "lead": (DataType.DOUBLE, ColumnMapping("" if text else "d", format="leading")),
        "span": (DataType.INTERVAL, ColumnMapping()),
        "when": (DataType.TIMESTAMP, ColumnMapping("" if text else "ts", zone="Europe/Berlin")),
        "day": (DataType.TIMESTAMP, ColumnMapping("" if text else "t", format="%d.%m.%Y")),
        "ts": (DataType.TIMESTAMP, ColumnMapping()),
    }
    if not plain:
        clauses["root"] = (DataType.TEXT, ColumnMapping("$.d"))
    if form == PayloadFormat.HTML:
        clauses["cell"] = (DataType.DOUBLE, ColumnMapping("[0]", format="leading"))
        clauses["css"] = (DataType.TEXT, ColumnMapping("td.d@class"))
    return clauses


def check_payloads(
    form: PayloadFormat, payloads: Iterable[bytes], *, with_rows: bool = False
) -> Counts:
    """Map payloads and look at every row and problem; return what became of them."""
    columns = columns_of(form, with_rows=with_rows)
    source = mapper(
        columns,
        SourceMapping("mqtt", format=form, rows=_ROWS.get(form, "") if with_rows else ""),
        key=(0,) if with_rows else (),
        time_column=list(columns).index("ts"),
        topic="+/{device}",
    )
    counts = Counts()
    types = {name: dtype for name, (dtype, _) in columns.items()}
    for payload in payloads:
        counts.add(_checked(source.map(payload, FACTS, ARRIVAL), types))
    return counts


def check_records(records: Iterable[Mapping[str, object]]) -> Counts:
    """Map values by their addresses; see `check_payloads`."""
    columns = columns_of(PayloadFormat.FIELDS, with_rows=False)
    mapping = SourceMapping("modbus", format=PayloadFormat.FIELDS)
    source = mapper(columns, mapping, time_column=list(columns).index("ts"))
    counts = Counts()
    types = {name: dtype for name, (dtype, _) in columns.items()}
    for record in records:
        counts.add(_checked(source.map_record(record, FACTS, ARRIVAL), types))
    return counts


def _checked(mapped: Mapped, types: dict[str, DataType]) -> Mapped:
    _check(mapped, types)
    return mapped


def _check(mapped: Mapped, types: dict[str, DataType]) -> None:
    assert len(mapped.rows) <= MAX_ROWS
    assert len(mapped.problems) <= MAX_PROBLEMS
    assert all(len(problem) <= MAX_PROBLEM_TEXT for problem in mapped.problems)
    assert not mapped.refused or mapped.problems
    for row in mapped.rows:
        assert row.keys() == types.keys()
        for name, value in row.items():
            assert conforms(value, types[name]), (name, value)
            if types[name] == DataType.TIMESTAMP and value is not None:
                assert EARLIEST <= int(value) < LATEST
            assert not isinstance(value, str) or len(value) <= 4_000
        assert row["ts"] is not None
    # It travels as JSON: nothing that is no Unicode is in it.
    msgspec.json.encode(mapped)
