"""CREATE SOURCE … WITH (connector = …) becomes a mapping."""

import itertools
import re

import msgspec
import pytest

from streamsql.binder import define, mapping_warnings
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import BindingError, QueryError
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from streamsql.syntax import CreateSource, parse_statement
from streamsql.wire.codec import decode_json, encode_json
from tests.streamsql.from_text import unmarked

CLIMATE = """
CREATE SOURCE climate (
  device      TEXT,
  temperature DOUBLE FROM 'AM2301.Temperature' UNIT 'Cel',
  kwh         DOUBLE FROM 'ENERGY.Total' IN 'Wh' UNIT 'kWh',
  contact     BOOLEAN FROM 'state' VALUES ('ON' = TRUE, 0 = FALSE, 'lost' = NULL),
  raw         INTEGER FROM 'adc' SCALE 0.1 OFFSET -40,
  ts          TIMESTAMP FROM 'Time' FORMAT '%d.%m.%Y %H:%M' ZONE 'Europe/Berlin',
  KEY (device)
) WITH (connector = 'mqtt', endpoint = 'home', gateways = 'west, east', ttl = '90 s',
        topic = 'tele/{device}/SENSOR', only = 'type=sensor, ENERGY', qos = 1)
"""


def defined(text: str) -> SourceDefinition:
    statement = parse_statement(text)
    assert isinstance(statement, CreateSource)
    definition = define(statement, Catalog())
    assert isinstance(definition, SourceDefinition)
    return definition


def test_a_declared_source() -> None:
    definition = defined(CLIMATE)
    assert definition.mapping == SourceMapping(
        connector="mqtt",
        endpoint="home",
        gateways=("west", "east"),
        format=PayloadFormat.JSON,
        only=(("type", "sensor"), ("ENERGY", None)),
        columns=(
            ColumnMapping(),
            ColumnMapping(path="AM2301.Temperature", unit="Cel"),
            ColumnMapping(path="ENERGY.Total", unit_in="Wh", unit="kWh"),
            ColumnMapping(path="state", values=(("ON", True), ("0", False), ("lost", None))),
            ColumnMapping(path="adc", scale=0.1, offset=-40.0),
            ColumnMapping(path="Time", format="%d.%m.%Y %H:%M", zone="Europe/Berlin"),
        ),
        options=(("topic", "tele/{device}/SENSOR"), ("qos", "1")),
    )
    assert (definition.version, definition.ttl, definition.key) == (1, 90_000_000, (0,))


def test_it_survives_json() -> None:
    definition = defined(CLIMATE)
    assert decode_json(encode_json(definition), SourceDefinition) == definition


def test_its_text_defines_it_again() -> None:
    definition = defined(CLIMATE)
    again = defined(definition.text)
    assert msgspec.structs.replace(again, text="") == msgspec.structs.replace(definition, text="")


def test_a_source_without_a_connector_is_not_declared() -> None:
    definition = defined("CREATE SOURCE seat (desk TEXT) WITH (ttl = '5 s')")
    assert (definition.mapping, definition.version) == (None, 0)


@pytest.mark.parametrize(
    ("connector", "payloads"),
    [
        ("mqtt", PayloadFormat.JSON),
        ("http", PayloadFormat.JSON),
        ("modbus", PayloadFormat.FIELDS),
        ("opcua", PayloadFormat.FIELDS),
        ("my_meter", PayloadFormat.JSON),
        ("mqtt5", PayloadFormat.JSON),
        ("mbus", PayloadFormat.JSON),
        ("dbus", PayloadFormat.JSON),
        ("soap", PayloadFormat.JSON),
        ("smtp", PayloadFormat.JSON),
        ("opcda", PayloadFormat.JSON),
        ("mysql", PayloadFormat.JSON),
        ("relay", PayloadFormat.JSON),
    ],
)
def test_formats_by_default(connector: str, payloads: PayloadFormat) -> None:
    """Plug-ins may have names that resemble ours."""
    topic = ", topic = 'a'" if connector == "mqtt" else ""
    mapping = defined(f"CREATE SOURCE s (a TEXT) WITH (connector = '{connector}'{topic})")
    assert mapping.mapping is not None
    assert (mapping.mapping.connector, mapping.mapping.format) == (connector, payloads)


@pytest.mark.parametrize(
    ("columns", "availability", "message"),
    [
        ("device TEXT, n INTEGER", "a/{device}/lwt", "it has no KEY"),
        ("device TEXT, KEY (device)", "a/{room}/lwt", "names {room}, which topic does not"),
        ("id TEXT, KEY (id)", "a/{device}/lwt", "which is in no column of s"),
        ("device TEXT, KEY (device)", "a/#/lwt", "# is allowed only at the end"),
    ],
)
def test_availability_that_withdraws_nothing_is_refused(
    columns: str, availability: str, message: str
) -> None:
    with pytest.raises(BindingError, match=re.escape(message)) as caught:
        defined(
            f"CREATE SOURCE s ({columns}) WITH (connector = 'mqtt', topic = 'a/{{device}}', "
            f"availability = '{availability}')"
        )
    assert caught.value.code == "bad_option"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("columns", "availability"),
    [
        ("device TEXT, part INTEGER, KEY (device, part)", "a/{device}/lwt"),
        ("d TEXT FROM '@device', id TEXT, KEY (id)", "a/{device}/lwt"),
        ("device TEXT, KEY (device)", "a/bridge"),
    ],
)
def test_availability_by_any_column_or_of_all_devices(columns: str, availability: str) -> None:
    definition = defined(
        f"CREATE SOURCE s ({columns}) WITH (connector = 'mqtt', topic = 'a/{{device}}', "
        f"availability = '{availability}')"
    )
    assert definition.mapping is not None
    assert definition.mapping.option("availability") == availability


def test_a_register_has_an_address_and_a_data_type() -> None:
    definition = defined(
        "CREATE SOURCE meter (kw DOUBLE FROM 'holding:100' FORMAT 'int32 swap' SCALE 0.001, "
        "state TEXT FROM 'coil:3' FORMAT 'bit') WITH (connector = 'modbus', interval = '5 s')"
    )
    assert definition.mapping is not None
    assert definition.mapping.columns == (
        ColumnMapping(path="holding:100", format="int32 swap", scale=0.001),
        ColumnMapping(path="coil:3", format="bit"),
    )


def test_names_with_commas_and_equal_signs_in_only() -> None:
    definition = defined(
        "CREATE SOURCE s (a TEXT) WITH (connector = 'http', "
        """only = 'x["a,b=c"]=1, y="p, q", z=')"""
    )
    assert definition.mapping is not None
    assert definition.mapping.only == (('x["a,b=c"]', "1"), ("y", "p, q"), ("z", ""))


def test_conditions_on_rows() -> None:
    definition = defined(
        "CREATE SOURCE s (a TEXT) WITH (connector = 'http', rows = '[*]', "
        """only_rows = 'pdr > 0, channel, x["a,b>c"]!="p, q", n<=-1.5, @key=k')"""
    )
    assert definition.mapping is not None
    assert definition.mapping.only_rows == (
        ("pdr", ">", "0"),
        ("channel", "", ""),
        ('x["a,b>c"]', "!=", "p, q"),
        ("n", "<=", "-1.5"),
        ("@key", "=", "k"),
    )


def test_options_of_plug_ins_are_theirs() -> None:
    mapping = defined("CREATE SOURCE s (a TEXT) WITH (connector = 'mbus', bauds = '2400')").mapping
    assert mapping is not None
    assert mapping.options == (("bauds", "2400"),)


CLAUSES = ("FROM 'a.b'", "FORMAT 'comma'", "SCALE 0.5", "OFFSET -3", "IN 'Wh'", "UNIT 'kWh'")


@pytest.mark.parametrize("order", list(itertools.permutations(CLAUSES))[::7])
def test_any_order_of_clauses_says_the_same(order: tuple[str, ...]) -> None:
    text = "CREATE SOURCE s (x DOUBLE {}) WITH (connector = 'http')"
    assert (
        defined(text.format(" ".join(order))).mapping
        == defined(text.format(" ".join(CLAUSES))).mapping
    )


def test_every_clause_may_stand_anywhere() -> None:
    clauses = ("FROM 'Time'", "FORMAT '%d.%m.%Y'", "ZONE 'Europe/Berlin'", "VALUES ('-' = NULL)")
    expected = ColumnMapping("Time", "%d.%m.%Y", "Europe/Berlin", values=(("-", None),))
    for order in itertools.permutations((*clauses, "PRIMARY KEY")):
        text = f"CREATE SOURCE s (at TIMESTAMP {' '.join(order)}) WITH (connector = 'http')"
        mapping = defined(text).mapping
        assert mapping is not None
        assert mapping.columns == (expected,)


MQTT = "WITH (connector = 'mqtt', topic = 'a/{id}')"
HTTP = "CREATE SOURCE s (a TEXT) WITH (connector = 'http'"
SPARKPLUG = "CREATE SOURCE s (a TEXT) WITH (connector = 'mqtt', format = 'sparkplug'"
REFUSED = [
    (f"CREATE SOURCE s (a DOUBLE «FRM» 'x') {MQTT}", "clause of the column", "FROM 'ENERGY.Total'"),
    (f"CREATE SOURCE s (a DOUBLE FROM «x») {MQTT}", "text in single quotes", "FROM 'ENERGY"),
    (f'CREATE SOURCE s (a DOUBLE FROM «"x"») {MQTT}', "text in single quotes", "FROM 'ENERGY"),
    (f"CREATE SOURCE s (a DOUBLE FROM 'x' «FROM» 'y') {MQTT}", "at most once", "remove one FROM"),
    (f"CREATE SOURCE s (a DOUBLE SCALE «'2'») {MQTT}", "number after SCALE", "SCALE 0.1"),
    (f"CREATE SOURCE s (a DOUBLE OFFSET -«x») {MQTT}", "number after OFFSET", "OFFSET -40"),
    (f"CREATE SOURCE s (a DOUBLE SCALE «1e999») {MQTT}", "finite number", "SCALE 0.1"),
    (f"CREATE SOURCE s (a DOUBLE VALUES «'ON'» = 1) {MQTT}", "expected (", "VALUES ('ON' = TRUE"),
    (f"CREATE SOURCE s (a DOUBLE VALUES ('ON' «TRUE»)) {MQTT}", "expected =", "VALUES ('ON'"),
    (f"CREATE SOURCE s (a DOUBLE VALUES ('ON' = «on»)) {MQTT}", "the column's value", "VALUES ("),
    (f"CREATE SOURCE s (a DOUBLE VALUES («x» = 1)) {MQTT}", "what the device sends", "VALUES ("),
    (f"CREATE SOURCE s (a DOUBLE FROM «''») {MQTT}", "FROM is empty", "FROM 'ENERGY"),
    (f"CREATE SOURCE s (a DOUBLE FROM «'a..b'») {MQTT}", "no field path", "FROM 'ENERGY"),
    (f"CREATE SOURCE s (a DOUBLE FROM «'a[*]'») {MQTT}", "rows", "FROM 'ENERGY"),
    (f"CREATE SOURCE s (a DOUBLE FROM «'@'») {MQTT}", "names no fact", "FROM 'ENERGY"),
    (f"CREATE SOURCE s (a TEXT FROM «'@key'») {MQTT}", "payload is one row", "rows ="),
    (f"CREATE SOURCE s (a DOUBLE FORMAT «'komma'») {MQTT}", "no format of numbers", "'comma'"),
    (f"CREATE SOURCE s (a TEXT FORMAT «'comma'») {MQTT}", "numbers and times", "FORMAT"),
    (f"CREATE SOURCE s (a TIMESTAMP FORMAT «'%d.%m.'») {MQTT}", "no complete date", "'%d.%m.%Y"),
    (f"CREATE SOURCE s (a TIMESTAMP ZONE «'Europe/Berln'») {MQTT}", "Europe/Berlin", "ZONE"),
    (f"CREATE SOURCE s (a DOUBLE ZONE «'UTC'») {MQTT}", "ZONE is for times", "ZONE"),
    (f"CREATE SOURCE s (a DOUBLE UNIT «'celsus'») {MQTT}", "celsus", "UNIT 'Cel'"),
    (f"CREATE SOURCE s (a DOUBLE UNIT 'Cel' IN «'Wh'») {MQTT}", "Wh", "IN 'Wh' UNIT 'kWh'"),
    (f"CREATE SOURCE s (a DOUBLE «IN» 'Wh') {MQTT}", "the column has no unit", "UNIT 'kWh'"),
    (f"CREATE SOURCE s (a TEXT UNIT «'Cel'») {MQTT}", "for numbers", "UNIT 'Cel'"),
    (f"CREATE SOURCE s (a TEXT SCALE «0.1») {MQTT}", "for numbers", "SCALE 0.1"),
    (f"CREATE SOURCE s (a DOUBLE SCALE «0») {MQTT}", "all values equal", "SCALE 0.1"),
    (f"CREATE SOURCE s (a BOOLEAN VALUES ('x' = «'maybe'»)) {MQTT}", "not a BOOLEAN", "BOOLEAN"),
    (f"CREATE SOURCE s (a TEXT VALUES (1 = 'x', «'1'» = 'y')) {MQTT}", "twice", "VALUES"),
    ("CREATE SOURCE s (a DOUBLE «FROM» 'x')", "has no connector", "connector = 'mqtt'"),
    ("CREATE SOURCE s (a DOUBLE «UNIT» 'Cel')", "no connector", "WITH"),
    ("CREATE TABLE t (a DOUBLE «FROM» 'x')", "this is a table", "CREATE SOURCE"),
    (
        "CREATE SOURCE s (a TEXT) WITH (connector = 'mqtt', topic = 'a', «availabilty» = 'b')",
        "sources of connector mqtt have no option 'availabilty'",
        "did you mean availability?",
    ),
    (
        "CREATE SOURCE s (a TEXT) WITH (connector = 'http', «intervall» = '5 s')",
        "sources of connector http have no option 'intervall'",
        "did you mean interval?",
    ),
    (
        "CREATE SOURCE s (a TEXT FROM 'holding:1') WITH (connector = 'modbus', «gatways» = 'x')",
        "sources of connector modbus have no option 'gatways'",
        "did you mean gateways?",
    ),
    ("CREATE SOURCE s (a TEXT) WITH («connector» = 'HTTP-Push')", "no connector", "http_push?"),
    ("CREATE SOURCE s (a TEXT) WITH («connector» = 'opc-ua')", "no connector", "opcua?"),
    ("CREATE SOURCE s (a TEXT) WITH («connector» = 'my meter')", "not the name", "my_meter"),
    ("CREATE SOURCE s (a TEXT) WITH («connector» = 'mqtt')", "needs the option topic", "topic ="),
    ("CREATE SOURCE s (a TEXT) WITH (connector = 'mqtt', «topic» = 'a/#/b')", "#", "# for all"),
    ("CREATE SOURCE s (a TEXT) WITH (connector = 'mqtt', «topic» = 'a/{x')", "brace", "tele/{dev"),
    ("CREATE SOURCE s (a TEXT) WITH (connector = 'mqtt', «topic» = '{key}')", "@key", "topic ="),
    (f"{SPARKPLUG}, «topic» = 'tele/#')", "Sparkplug's topics are", "'spBv1.0/#'"),
    (f"{SPARKPLUG}, «topic» = 'spBv1.0/g/NCMD/n')", "no type of message", "remove topic"),
    (f"{SPARKPLUG}, «share» = 'us')", "needs all messages of a Sparkplug node", "remove share"),
    (f"{SPARKPLUG}, «availability» = 'a/b')", "announce their deaths", "remove availability"),
    (f"{HTTP}, «wrapper» = 'motes')", "connectors feed sources", "connector = 'motes'"),
    (f"{HTTP}, «format» = 'jsn')", "no format", "json?"),
    ("CREATE SOURCE s (a TEXT) WITH (connector = 'snmp', «format» = 'xml')", "addresses", "remove"),
    (f"{HTTP}, «endpoint» = 'a b')", "endpoint", "'home'"),
    (f"{HTTP}, «gateways» = 'a,,b')", "gateway", "'west"),
    (f"{HTTP}, «rows» = 'a..b')", "no field path", "rows"),
    (
        f"{HTTP}, format = 'text', «rows» = 'a[*]')",
        "has no rows to choose", "remove rows",
    ),
    (f"{HTTP}, «only» = '=3')", "no condition", "type="),
    (f"{HTTP}, «only_rows» = '>3')", "no condition", "pdr>0"),
    (f"{HTTP}, «only_rows» = ' ')", "no condition", "pdr>0"),
    (f"{HTTP}, «only_rows» = 'a>b')", "no number", "pdr>0"),
    (f"{HTTP}, «only_rows» = 'a..b>1')", "no field path", "pdr>0"),
    (f"{HTTP}, rows = 'x[*]', «only_rows» = '$.a')", "write it in only", "pdr>0"),
    ("CREATE SOURCE s (a TEXT) WITH («only_rows» = 'a')", "needs the option connector", "add"),
    (f"{HTTP}, «only» = 'a=1,a=2')", "twice", "only ="),
    (f"{HTTP}, «only» = 'a..b')", "no field path", "only"),
    (f"{HTTP}, «only» = '')", "is missing", "only ="),
    (f"{HTTP}, format = 'senml', «only» = 'n=x')", "only facts", "only ="),
    (f"{HTTP}, «delimiter» = ';')", "json", "csv"),
    (
        f"{HTTP}, format = 'csv', «delimiter» = ';;')",
        "delimiter", "';'",
    ),
    (
        f"{HTTP}, format = 'csv', «header» = 'ja')",
        "not true or false", "header = 'false'",
    ),
    ("CREATE SOURCE s (a TEXT) WITH («endpoint» = 'home')", "needs the option connector", "mqtt"),
    ("CREATE SOURCE s (a TEXT) WITH («topic» = 'a/+')", "needs the option connector", "mqtt"),
    ("CREATE SOURCE s (a TEXT) WITH («conector» = 'mqtt')", "no option", "connector?"),
    (f"{HTTP}, «url» = '{'x' * 4001}')", "4001", "short"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    REFUSED,
    ids=[re.sub(r"\W+", "-", unmarked(case[0])[0])[15:75] for case in REFUSED],
)
def test_place_and_hint(marked: str, message: str, hint: str) -> None:
    text, place = unmarked(marked)
    with pytest.raises(QueryError) as caught:
        defined(text)
    error = caught.value
    assert error.span is not None
    assert (error.span.line, error.span.column, error.span.text) == place
    assert message in error.message
    assert hint in error.hint


def test_texts_and_values_are_bounded() -> None:
    with pytest.raises(QueryError, match="at most 1000 characters"):
        defined(f"CREATE SOURCE s (a TEXT FROM '{'x' * 1001}') WITH (connector = 'http')")
    many = ", ".join(f"{n} = {n}" for n in range(257))
    with pytest.raises(QueryError, match="at most 256 values"):
        defined(f"CREATE SOURCE s (a INTEGER VALUES ({many})) WITH (connector = 'http')")
    paths = ", ".join(f"f{n}" for n in range(33))
    with pytest.raises(BindingError, match="more than 32 conditions"):
        defined(f"{HTTP}, only = '{paths}')")


def _keyed(column: str, key: str) -> str:
    return SPARKPLUG.replace("a TEXT", f"{column}, KEY ({key})")


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (f"CREATE SOURCE s (id TEXT) {MQTT}", ()),
        (f"CREATE SOURCE s (x TEXT FROM '@id') {MQTT}", ()),
        (f"CREATE SOURCE s (x TEXT) {MQTT}", ("{id} feeds no column of s",)),
        (f"CREATE SOURCE s (id TEXT, x TEXT FROM '@topc') {MQTT}", ("did you mean @topic?",)),
        (f"CREATE SOURCE s (id TEXT, x TEXT FROM '@battery') {MQTT}", ()),
        ("CREATE SOURCE s (id TEXT)", ()),
        (f"{SPARKPLUG})", ()),
        (_keyed("who TEXT FROM '@device'", "who") + ")", ()),
        (f"{_keyed('a TEXT', 'a')})", ("rows of s stay when their device goes offline",)),
        (f"{_keyed('node TEXT', 'node')}, topic = 'spBv1.0/g/NDATA/+')", ()),
    ],
)
def test_likely_mistakes_are_warned_of(text: str, warned: tuple[str, ...]) -> None:
    found = mapping_warnings(defined(text))
    assert len(found) == len(warned)
    assert all(part in warning for part, warning in zip(warned, found, strict=True))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "http://me:hunter2@meter/now"),
        ("path", "/now?api_key=hunter2"),
        ("path", "/now?unit=3&access_token=hunter2"),
        ("password", "hunter2"),
        ("headers", "Authorization: Bearer hunter2"),
        ("api_token", "hunter2"),
    ],
)
def test_secrets_do_not_travel_with_definitions(name: str, value: str) -> None:
    """Definitions are retained messages, which every site reads."""
    text = f"CREATE SOURCE a (b TEXT) WITH (connector = 'http', {name} = '{value}')"
    with pytest.raises(BindingError, match=f"{name} holds a secret") as refused:
        defined(text)
    assert "endpoint" in (refused.value.hint or "")
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize(
    ("origin", "form"),
    [
        ("'a.b'", PayloadFormat.JSON),
        ("'dial nr. 12'", PayloadFormat.FIELDS),
        ("'ns=2;s=Press'", PayloadFormat.JSON),
    ],
)
def test_what_is_no_path_is_an_address_of_a_plug_in(origin: str, form: PayloadFormat) -> None:
    """Its class may take paths for addresses, too: only the gateways know it."""
    text = f"CREATE SOURCE s (a INTEGER, b INTEGER FROM {origin}) WITH (connector = 'my_meter'"
    mapping = defined(f"{text})").mapping
    assert mapping is not None
    assert (mapping.format, mapping.columns[1].path) == (form, origin.strip("'"))
    if form == PayloadFormat.FIELDS:
        with pytest.raises(BindingError, match="column b"):
            defined(f"{text}, format = 'json')")


def test_a_source_of_sparkplug_needs_no_topic() -> None:
    mapping = defined(f"{SPARKPLUG})").mapping
    assert mapping is not None
    assert mapping.option("topic") == "spBv1.0/#"
    assert defined(f"{SPARKPLUG}, topic = 'spBv1.0/g/#')").mapping == msgspec.structs.replace(
        mapping, options=(("topic", "spBv1.0/g/#"),)
    )
