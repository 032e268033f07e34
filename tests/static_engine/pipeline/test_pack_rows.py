"""Packs become rows of their source, whole or not at all; nothing in one stops another."""

import zlib

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from static_engine.lake.kept_readings import OWN_NAMES, arrow_schema
from static_engine.pipeline.pack_rows import DefinitionOf, KeptRows, Landed, rows_of_packs
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.codec import encode_compressed_json, encode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.senml import records_of_rows
from streamsql.wire.source_shapes import layout_of
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
AT = 1_767_225_600_123_457
HEAT = SourceDefinition(
    "heat",
    SourceKind.STREAM,
    Schema.of(
        ("sensor", DataType.TEXT),
        ("v", DataType.DOUBLE),
        ("n", DataType.INTEGER),
        ("is_on", DataType.BOOLEAN),
        ("at", DataType.TIMESTAMP),
    ),
)
OLD = msgspec.structs.replace(HEAT, schema=Schema.of(("v", DataType.TEXT)))
VALUES = st.tuples(
    st.none() | st.text(max_size=5),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.booleans(),
    st.integers(0, 4_000_000_000_000_000),
)


def definitions(*known: SourceDefinition) -> DefinitionOf:
    """The first one is the present one."""

    def find(name: str, layout: int) -> SourceDefinition | None:
        for each in known:
            if each.name == name and layout in (0, layout_of(each.scan())):
                return each
        return None

    return find


def landed(
    rows: list[Row],
    *,
    of: SourceDefinition = HEAT,
    seq: int = 0,
    lane: str = "obs",
    times: list[int] | None = None,
) -> Landed:
    observed = [("dev", ts, row) for ts, row in zip(times or [AT] * len(rows), rows, strict=True)]
    records = tuple(records_of_rows(observed, of.schema))
    pack = ObservationPack(3, seq, records, layout=layout_of(of.scan()))
    payload = encode_compressed_json(pack) if seq % 2 else encode_json(pack)
    return Landed(f"{TOPICS.root}/gw/gw-1/{lane}/{of.name}", payload, AT + 5)


def parsed(*messages: Landed, known: tuple[SourceDefinition, ...] = (HEAT,)) -> KeptRows:
    return rows_of_packs(messages, TOPICS, definitions(*known))


def lists_of(kept: KeptRows, definition: SourceDefinition = HEAT) -> list[list[object]]:
    """Rows of a definition, as they are in the files of the lake."""
    rows = kept.sources[definition.name, layout_of(definition.scan())]
    columns = list(zip(definition.schema.names, definition.schema.dtypes, strict=True))
    table = rows.table(arrow_schema(columns))
    plain = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in table.columns
    ]
    return [list(row) for row in zip(*(column.to_pylist() for column in plain), strict=True)]


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_rows_come_out_as_the_gateway_had_them(rows: list[Row]) -> None:
    kept = parsed(landed(rows, seq=7, times=[AT + n for n in range(len(rows))]))
    assert not kept.dead
    assert lists_of(kept) == [
        [*row, "gw-1", 3, 7, place, AT + place, False, AT + 5] for place, row in enumerate(rows)
    ]


def test_packs_of_both_lanes_and_former_definitions_are_rows_of_their_own() -> None:
    kept = parsed(
        landed([("a", 1.0, 1, True, AT)]),
        landed([("b", 2.0, 2, False, AT)], seq=1, lane="hist"),
        landed([("warm",)], of=OLD, seq=2),
        known=(HEAT, OLD),
    )
    assert [row[0] for row in lists_of(kept)] == ["a", "b"]
    assert lists_of(kept, OLD) == [["warm", "gw-1", 3, 2, 0, AT, False, AT + 5]]
    assert len(OWN_NAMES) == 7


@pytest.mark.parametrize(
    ("topic", "payload", "reason"),
    [
        ("gw/gw-1/obs/heat", b"{", "ObservationPack"),
        ("gw/gw-1/obs/heat", zlib.compress(b"{"), "ObservationPack"),
        ("gw/gw-1/obs/heat", zlib.compress(b" " * 2_000_001), "when expanded"),
        ("gw/gw-1/obs/seat", encode_json(ObservationPack(1, 1, ())), "no source 'seat'"),
        (
            "gw/gw-1/obs/heat",
            encode_json(ObservationPack(1, 1, (), layout=1)),
            "made by another definition",
        ),
        (
            "gw/gw-1/obs/heat",
            b'{"epoch":1,"seq":1,"e":[{"bn":"d:","bt":1e9,"n":"v","vs":"warm"}]}',
            "row 1 of a pack of heat: ",
        ),
        (
            "gw/gw-1/obs/heat",
            b'{"epoch":1,"seq":1,"e":[{"bn":"d:","bt":1e9,"n":"w","v":1}]}',
            "row 1 of a pack of heat: ",
        ),
        (
            "gw/gw-1/obs/heat",
            b'{"epoch":1,"seq":1,"e":[{"bn":"d:","bt":1e12,"n":"v","v":1}]}',
            "outside the years 1 to 9999",
        ),
        ("gw/gw-1/obs/heat", b'{"epoch":1,"seq":1,"e":[{"v":1}]}', "needs a name"),
        ("gw/gw 1/obs/heat", b"", "is not an id"),
        ("q/x/out/gw-1", b"", "is no observation lane"),
        ("gw/gw-1/obs/heat", b" " * 2_000_001, "the max is"),
    ],
)
def test_what_cannot_be_kept_is_a_dead_letter_with_its_reason(
    topic: str, payload: bytes, reason: str
) -> None:
    bad = Landed(f"{TOPICS.root}/{topic}", payload, AT)
    good = landed([("a", 1.0, 1, True, AT)])
    kept = parsed(bad, good, bad)
    assert [dead.message for dead in kept.dead] == [bad, bad]
    assert reason in kept.dead[0].reason
    assert len(lists_of(kept)) == 1


def test_a_pack_with_one_bad_row_is_not_kept_in_part() -> None:
    payload = (
        b'{"epoch":1,"seq":1,"e":[{"bn":"d:","bt":1e9,"n":"v","v":1},'
        b'{"bn":"d:","bt":1e9,"n":"v","vb":true}]}'
    )
    kept = parsed(Landed(f"{TOPICS.root}/gw/gw-1/obs/heat", payload, AT))
    assert not kept.sources
    assert kept.dead[0].reason.startswith("row 2 of a pack of heat")


def test_a_fault_of_the_parser_costs_its_pack_only() -> None:
    def find(name: str, _layout: int) -> SourceDefinition | None:
        if name == "poison":
            raise RuntimeError("boom")
        return HEAT

    poison = msgspec.structs.replace(HEAT, name="poison")
    messages = [landed([("a", 1.0, 1, True, AT)], of=poison), landed([("a", 1.0, 1, True, AT)])]
    kept = rows_of_packs(messages, TOPICS, find)
    assert kept.dead[0].reason == "reading it failed: RuntimeError: boom"
    assert len(kept.sources) == 1
