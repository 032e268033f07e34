"""One payload of each format, the statement that makes rows of it, and the bare library."""

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any, NamedTuple

import cbor2
import msgspec
from lxml.html import document_fromstring

from benchmarks._mapping.sparkplug_library import payload_class


class Case(NamedTuple):
    """A payload; `library` decodes it to what the library makes of it, and nothing else."""

    columns: str
    options: str
    payload: bytes
    rows: int
    library: Callable[[bytes], object]
    name: str = ""
    topic: str = "tele/{device}/SENSOR"


TASMOTA = (
    b'{"Time":"2026-06-01T12:00:02","AM2301":{"Temperature":21.5,"Humidity":40.2,"DewPoint":7.5},'
    b'"TempUnit":"C"}'
)
CLIMATE = """
    temperature DOUBLE FROM 'AM2301.Temperature' UNIT 'Cel',
    humidity DOUBLE FROM 'AM2301.Humidity' UNIT '%RH',
    ts TIMESTAMP FROM 'Time'"""
CONVERTED = """
    temperature DOUBLE FROM 'AM2301.Temperature' IN 'Cel' UNIT 'degF',
    humidity INTEGER FROM 'AM2301.Humidity' SCALE 10,
    fan BOOLEAN FROM 'TempUnit' VALUES ('C' = TRUE, 'F' = FALSE),
    ts TIMESTAMP FROM 'Time' FORMAT '%Y-%m-%dT%H:%M:%S' ZONE 'Europe/Berlin'"""
SENSORS = [{"id": f"s{number}", "t": 20 + number / 10, "on": "ON"} for number in range(10)]
SENML = [
    {"bn": "urn:dev:ow:10e2073a01080063:", "bt": 1.78e9, "n": "temperature", "u": "Cel", "v": 23.1},
    {"n": "humidity", "u": "%RH", "v": 50},
]
SENML_LABELS = {"bn": -2, "bt": -3, "n": 0, "u": 1, "v": 2}
XML = b"<r>" + b"".join(
    b'<sensor id="s%d"><temp>%d</temp></sensor>' % (number, number) for number in range(10)
)
HTML = b"<html><body><table id=pdu><tr><th>Outlet<th>Power</tr>" + b"".join(
    b"<tr><td>Outlet %d</td><td class=w>%d W</td></tr>" % (number, number) for number in range(24)
)
PAYLOAD = payload_class()
SPARKPLUG = PAYLOAD(
    metrics=[
        {"name": "temperature", "datatype": 10, "double_value": 21.5},
        {"name": "humidity", "datatype": 3, "int_value": 40},
    ],
    timestamp=1_780_000_000_000,
).SerializeToString()

_JSON = msgspec.json.Decoder()


def _csv(payload: bytes) -> list[Any]:
    return list(csv.DictReader(io.StringIO(payload.decode())))


CASES = {
    "json": Case(CLIMATE, "", TASMOTA, 1, _JSON.decode, "msgspec"),
    "json, converted": Case(CONVERTED, "", TASMOTA, 1, _JSON.decode, "msgspec"),
    "json, 10 rows": Case(
        "id TEXT, t DOUBLE, state BOOLEAN FROM 'on' VALUES ('ON' = TRUE, 'OFF' = FALSE)",
        ", rows = 'sensors[*]'", msgspec.json.encode({"sensors": SENSORS}), 10, _JSON.decode,
        "msgspec",
    ),
    "text": Case(
        "temperature DOUBLE FORMAT 'leading'", ", format = 'text'", b"21.5 C", 1, bytes.decode,
        "str",
    ),
    "csv, 10 rows": Case(
        "id TEXT, t DOUBLE", ", format = 'csv'",
        b"id,t\r\n" + b"".join(b"s%d,%d.5\r\n" % (number, number) for number in range(10)),
        10, _csv, "csv",
    ),
    "cbor": Case(
        CLIMATE, ", format = 'cbor'", cbor2.dumps(_JSON.decode(TASMOTA)), 1, cbor2.loads, "cbor2"
    ),
    "senml": Case(
        "sensor TEXT FROM '@device', temperature DOUBLE UNIT 'Cel', humidity DOUBLE UNIT '%RH'",
        ", format = 'senml'", msgspec.json.encode(SENML), 1, _JSON.decode, "msgspec",
    ),
    "senml+cbor": Case(
        "sensor TEXT FROM '@device', temperature DOUBLE UNIT 'Cel', humidity DOUBLE UNIT '%RH'",
        ", format = 'senml+cbor'",
        cbor2.dumps([{SENML_LABELS[key]: value for key, value in one.items()} for one in SENML]),
        1, cbor2.loads, "cbor2",
    ),
    "sparkplug": Case(
        "temperature DOUBLE, humidity INTEGER", ", format = 'sparkplug'", SPARKPLUG, 1,
        PAYLOAD.FromString, "protobuf", "spBv1.0/plant/#",
    ),
    "xml, 10 rows": Case(
        "id TEXT FROM './@id', temp DOUBLE", ", format = 'xml', rows = 'sensor'", XML + b"</r>", 10,
        ET.fromstring, "ElementTree",
    ),
    "html, 24 rows": Case(
        "outlet TEXT FROM '[0]', power DOUBLE FROM 'td.w' FORMAT 'leading' UNIT 'W'",
        ", format = 'html', rows = 'table#pdu tr'", HTML + b"</table>", 24, document_fromstring,
        "lxml",
    ),
}  # fmt: skip
