"""The canonical text of a source parses to the same source."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.operators import SourceKind
from streamsql.data.types import DataType
from streamsql.errors import Span
from streamsql.syntax import CreateSource, parse_statement
from streamsql.syntax.script_places import Script
from streamsql.syntax.source_text import source_text
from streamsql.syntax.statement_parsers.column_clauses import EXAMPLES
from streamsql.syntax.statements import (
    ColumnClause,
    ColumnDefinition,
    Name,
    Option,
    ValueMeaning,
    Watermark,
)

NOWHERE = Span(1, 1, "")
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
NAMES = st.one_of(
    st.sampled_from(["room", "Room", "key", "primary", "watermark", "order", "from", "unit", "in"]),
    TEXTS.filter(lambda text: bool(text.strip())),
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-(10**17), 10**17), NUMBERS, TEXTS)


@st.composite
def clauses(draw: st.DrawFn) -> tuple[ColumnClause, ...]:
    words = draw(st.lists(st.sampled_from(sorted(EXAMPLES)), unique=True))
    found = []
    for word in words:
        value: str | float | tuple[ValueMeaning, ...] = draw(TEXTS)
        if word in ("SCALE", "OFFSET"):
            value = draw(NUMBERS)
        elif word == "VALUES":
            pairs = draw(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3))
            value = tuple(ValueMeaning(raw, v, NOWHERE, NOWHERE) for raw, v in pairs.items())
        found.append(ColumnClause(word, value, NOWHERE, NOWHERE))
    return tuple(found)


@st.composite
def sources(draw: st.DrawFn) -> CreateSource:
    names = [Name(n, NOWHERE) for n in draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))]
    types = st.sampled_from([t for t in DataType if t != DataType.NULL])
    columns = tuple(ColumnDefinition(n, draw(types), clauses=draw(clauses())) for n in names)
    lateness = draw(st.integers(0, 10**12))
    options = draw(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), TEXTS))
    return CreateSource(
        text="",
        span=NOWHERE,
        script=Script(""),
        name=draw(st.sampled_from(names)),
        kind=draw(st.sampled_from([SourceKind.STREAM, SourceKind.LINK])),
        columns=columns,
        key=tuple(names[: draw(st.integers(0, len(names)))]),
        watermark=draw(st.sampled_from([None, Watermark(names[0], lateness)])),
        options=tuple(Option(name, text, NOWHERE, NOWHERE) for name, text in options.items()),
    )


def without_places(statement: CreateSource) -> CreateSource:
    def name(found: Name) -> Name:
        return Name(found.text, NOWHERE)

    def clause(found: ColumnClause) -> ColumnClause:
        value = found.value
        if isinstance(value, tuple):
            value = tuple(ValueMeaning(m.raw, m.value, NOWHERE, NOWHERE) for m in value)
        return ColumnClause(found.word, value, NOWHERE, NOWHERE)

    late = statement.watermark
    return replace(
        statement,
        text="",
        span=NOWHERE,
        name=name(statement.name),
        columns=tuple(
            ColumnDefinition(
                name(column.name),
                column.dtype,
                clauses=tuple(sorted(map(clause, column.clauses), key=lambda c: c.word)),
            )
            for column in statement.columns
        ),
        key=tuple(map(name, statement.key)),
        watermark=None if late is None else Watermark(name(late.column), late.lateness),
        options=tuple(Option(o.name, o.value, NOWHERE, NOWHERE) for o in statement.options),
    )


@given(sources())
def test_it_parses_to_the_same_statement(statement: CreateSource) -> None:
    parsed = parse_statement(source_text(statement))
    assert isinstance(parsed, CreateSource)
    assert without_places(parsed) == without_places(statement)
    assert source_text(parsed) == source_text(statement)


def test_as_it_is_shown() -> None:
    statement = parse_statement(
        "CREATE STREAM Climate (device VARCHAR PRIMARY KEY, ts TIMESTAMP ZONE 'Europe/Berlin' "
        "FORMAT '%d.%m.%Y' FROM 'Time', contact BOOL VALUES ('it''s on' = TRUE, 0 = FALSE), "
        "raw INT OFFSET -40 SCALE 0.10, WATERMARK FOR ts AS ts - INTERVAL '90' SECONDS) "
        "WITH (connector = 'mqtt', topic = 'a', ttl = 90)"
    )
    assert isinstance(statement, CreateSource)
    assert (
        source_text(statement)
        == """CREATE SOURCE climate (
  device TEXT,
  ts TIMESTAMP FROM 'Time' FORMAT '%d.%m.%Y' ZONE 'Europe/Berlin',
  contact BOOLEAN VALUES ('it''s on' = TRUE, '0' = FALSE),
  raw INTEGER SCALE 0.1 OFFSET -40,
  KEY (device),
  WATERMARK FOR ts AS ts - INTERVAL '90 s'
) WITH (connector = 'mqtt', topic = 'a', ttl = '90')"""
    )
