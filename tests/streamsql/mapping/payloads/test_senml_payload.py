"""SenML: the examples of RFC 8428, section 5, and its rules of resolution."""

import json

import cbor2
import pytest

from streamsql.data.types import DataType
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.sources import Columns, mapper

ARRIVAL = 1_700_000_000_000_000
JSON = SourceMapping("mqtt", format=PayloadFormat.SENML)
CBOR = SourceMapping("mqtt", format=PayloadFormat.SENML_CBOR)
FACTS: Columns = {
    "device": (DataType.TEXT, ColumnMapping("@device")),
    "ts": (DataType.TIMESTAMP, ColumnMapping("@time")),
}
LABELS = {"bver": -1, "bn": -2, "bt": -3, "bu": -4, "bv": -5, "bs": -6, "n": 0, "u": 1, "v": 2,
          "vs": 3, "vb": 4, "s": 5, "t": 6, "ut": 7, "vd": 8}  # fmt: skip

Records = list[dict[str, object]]


def rows(columns: Columns, records: Records) -> list[tuple[object, ...]]:
    """Return the rows of a pack, which JSON and CBOR give alike and without a problem."""
    mapped = mapper(columns, JSON).map(json.dumps(records).encode(), {}, ARRIVAL)
    assert mapped.problems == []
    short = [{LABELS[label]: value for label, value in record.items()} for record in records]
    assert mapper(columns, CBOR).map(cbor2.dumps(short), {}, ARRIVAL) == mapped
    return [tuple(row.values()) for row in mapped.rows]


def problems(columns: Columns, records: object) -> list[str]:
    mapped = mapper(columns, JSON).map(json.dumps(records).encode(), {}, ARRIVAL)
    return mapped.problems


def column(
    path: str, unit: str = "", unit_in: str = "", dtype: DataType = DataType.DOUBLE
) -> tuple[DataType, ColumnMapping]:
    return dtype, ColumnMapping(path, unit=unit, unit_in=unit_in)


def test_a_single_data_point() -> None:
    # Section 5.1.1.
    found = rows(
        FACTS | {"t": column(".")}, [{"n": "urn:dev:ow:10e2073a01080063", "u": "Cel", "v": 23.1}]
    )
    assert found == [("urn:dev:ow:10e2073a01080063", ARRIVAL, 23.1)]


def test_multiple_data_points() -> None:
    # Section 5.1.2, first pack.
    found = rows(
        FACTS | {"voltage": column("voltage"), "current": column("current")},
        [
            {"bn": "urn:dev:ow:10e2073a01080063:", "n": "voltage", "u": "V", "v": 120.1},
            {"n": "current", "u": "A", "v": 1.2},
        ],
    )
    assert found == [("urn:dev:ow:10e2073a01080063", ARRIVAL, 120.1, 1.2)]


def test_one_value_over_time() -> None:
    # Section 5.1.2, second pack.
    found = rows(
        FACTS | {"voltage": column("voltage"), "current": column("current")},
        [
            {"bn": "urn:dev:ow:10e2073a0108006:", "bt": 1.276020076001e09, "bu": "A", "bver": 5,
             "n": "voltage", "u": "V", "v": 120.1},
            {"n": "current", "t": -5, "v": 1.2},
            {"n": "current", "t": -4, "v": 1.3},
            {"n": "current", "v": 1.7},
        ],
    )  # fmt: skip
    device = "urn:dev:ow:10e2073a0108006"
    assert found == [
        (device, 1276020076001000, 120.1, 1.7),
        (device, 1276020071001000, None, 1.2),
        (device, 1276020072001000, None, 1.3),
    ]


def test_a_base_name_is_the_whole_name_of_values_over_time() -> None:
    # Section 5.1.3: bn names the sensor, its records have no n.
    found = rows(
        FACTS | {"humidity": column(".")},
        [
            {"bn": "urn:dev:ow:10e2073a01080063", "bt": 1.320067464e09, "bu": "%RH", "v": 20},
            {"t": 10, "v": 20.5},
        ],
    )
    assert [row[1:] for row in found] == [(1320067464000000, 20.0), (1320067474000000, 20.5)]


def test_values_of_other_types() -> None:
    # Section 5.1.4.
    found = rows(
        {
            "temp": column("temp", dtype=DataType.DOUBLE),
            "label": column("label", dtype=DataType.TEXT),
            "open": column("open", dtype=DataType.BOOLEAN),
            "nfv": column("nfv", dtype=DataType.TEXT),
        },
        [
            {"bn": "urn:dev:ow:10e2073a01080063:", "n": "temp", "u": "Cel", "v": 23.1},
            {"n": "label", "vs": "Machine Room"},
            {"n": "open", "vb": False},
            {"n": "nfv", "vd": "aGkgCg"},
        ],
    )
    assert found == [(23.1, "Machine Room", False, "aGkgCg")]


def test_a_collection_of_devices() -> None:
    # Section 5.1.6: two devices in one pack.
    found = rows(
        {"device": FACTS["device"], "temperature": column("temperature")},
        [
            {"bn": "2001:db8::2/", "bt": 1.320078429e09, "n": "temperature", "u": "Cel", "v": 25.2},
            {"n": "humidity", "u": "%RH", "v": 30},
            {"bn": "2001:db8::1/", "n": "temperature", "u": "Cel", "v": 12.3},
            {"n": "humidity", "u": "%RH", "v": 67},
        ],
    )
    assert found == [("2001:db8::2", 25.2), ("2001:db8::1", 12.3)]


def test_units_of_records_are_converted() -> None:
    columns = {"energy": column("energy", unit="kWh"), "t": column("t", unit_in="degF", unit="Cel")}
    assert rows(columns, [{"n": "energy", "u": "J", "v": 7_200_000}, {"n": "t", "v": 212}]) == [
        (2.0, 100.0)
    ]
    told = problems(columns, [{"n": "energy", "u": "lx", "v": 1}, {"n": "t", "u": "XY", "v": 1}])
    assert told[0].startswith("row 1: column energy: lx does not convert to kWh")
    assert told[1] == "row 1: column t: the record's unit 'XY' is not known"


def test_base_values_and_sums_are_added() -> None:
    columns = {
        "v": column("v"),
        "flow": column("flow"),
        "total": column("flow sum"),
        "count": column("count", dtype=DataType.INTEGER),
    }
    found = rows(
        columns,
        [
            {"bv": 20, "bs": 100, "n": "v", "v": 0.1},
            {"n": "flow", "v": 1, "s": 0.5},
            {"n": "count", "s": 7},
        ],
    )
    assert found == [(20.1, 21.0, 100.5, 107)]


@pytest.mark.parametrize(
    ("given", "micros"),
    [
        ({"t": 2**28}, 268_435_456_000_000),
        ({"t": 2**28 - 1}, ARRIVAL + 268_435_455_000_000),
        ({"bt": 2**28 - 1, "t": 1}, 268_435_456_000_000),
        ({"t": -60.5}, ARRIVAL - 60_500_000),
        ({"bt": 1.7e9, "t": 0.000001}, 1_700_000_000_000_001),
    ],
)
def test_small_times_count_from_the_arrival(given: dict[str, object], micros: int) -> None:
    assert rows({"ts": FACTS["ts"], "v": column(".")}, [{"n": "a", "v": 1, **given}]) == [
        (micros, 1.0)
    ]


def test_the_event_time_of_a_row_is_that_of_its_records() -> None:
    source = mapper(
        {"ts": (DataType.TIMESTAMP, ColumnMapping()), "v": column(".")}, JSON, time_column=0
    )
    mapped = source.map(b'[{"n":"a","t":-1,"v":1}]', {}, ARRIVAL)
    assert mapped.rows == [{"ts": ARRIVAL - 1_000_000, "v": 1.0}]


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ({}, "payload: it is no SenML: expected an array of records"),
        ([1], "payload: record 1: 1 is no object"),
        ([{"n": "v", "v": "1"}], "row 1: record 1: v: '1' is no number"),
        ([{"n": "v", "v": 1, "x_": 1}], "payload: record 1: the field 'x_' has to be understood"),
        ([{"n": "v", "v": 1, "bver": 11}], "payload: record 1: version 11; the latest"),
        ([{"n": "v", "v": 1, "t": 1e300}], "row 1: record 1: t: 1e+300 s is no time"),
        ([{"n": "v", "v": 1, "t": -1e12}], "row 1: record 1: "),
        ([{"n": 1, "v": 1}], "row 1: record 1: n: 1 is no text"),
        ([{"n": "other", "v": 1}], "payload: no record has a name of a column's FROM; one has"),
        ([{"bn": "a", "bv": True, "n": "v"}], "payload: record 1: bv: true is no number"),
    ],
)
def test_a_wrong_pack_is_one_problem(records: object, problem: str) -> None:
    told = problems({"v": column("v")}, records)
    assert len(told) == 1
    assert told[0].startswith(problem)
