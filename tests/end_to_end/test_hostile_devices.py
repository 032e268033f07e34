"""Devices send nonsense of every format to a running gateway: it is counted, and others go on."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from broker.broker_testing import BrokerProcess
from gateway.gateway_settings import GatewaySettings
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.mapping.source_mapping import PayloadFormat
from streamsql.syntax import CreateSource, parse_script
from streamsql.wire.codec import decode_json
from streamsql.wire.site_messages import DeclaredState, SiteState
from streamsql.wire.source_orders import encode_order
from streamsql.wire.topics import Topics
from tests.end_to_end.federation import PATIENCE, ROOT, wait
from tests.streamsql.mapping.hostile.large import LARGE, oversized
from tests.streamsql.mapping.hostile.payloads import FORMATS, hostile_payloads

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

TOPICS = Topics("demo")
TIMES = 5
FLOOD = 200
COLUMNS = {
    PayloadFormat.SENML: "sensor TEXT FROM '@device', v DOUBLE FROM 't'",
    PayloadFormat.SENML_CBOR: "sensor TEXT FROM '@device', v DOUBLE FROM 't'",
    PayloadFormat.TEXT: "v DOUBLE",
    PayloadFormat.HTML: "v DOUBLE FROM '[1]'",
}
ROWS = {PayloadFormat.HTML: "table tr"}
BAD = {
    PayloadFormat.JSON: b'{"v": ',
    PayloadFormat.TEXT: b"soon",
    PayloadFormat.CSV: b"v\r\nsoon",
    PayloadFormat.CBOR: b"\xff",
    PayloadFormat.SENML: b'[{"n": 1',
    PayloadFormat.SENML_CBOR: b"\xff",
    PayloadFormat.SPARKPLUG: b"\x12\xff",
    PayloadFormat.XML: b"<r><v>1</r>",
    PayloadFormat.HTML: b"<table><tr><td>a<td>soon</table>",
}
CELLS = ("soon", float("inf"), 1e308, b"\xff\xfe", "9" * 500, "x" * 100_000)


def name_of(form: PayloadFormat) -> str:
    """Return the name of the source of a format."""
    return "of_" + form.value.replace("+", "_")


def topic_of(form: PayloadFormat) -> str:
    """Return the topic of its messages."""
    if form == PayloadFormat.SPARKPLUG:
        return "spBv1.0/plant/NDATA/press"
    return f"hostile/{form.value.replace('+', '-')}"


def statements() -> str:
    """Return a source for each format, one that is read by columns, and a good one."""
    by_format = (
        f"CREATE SOURCE {name_of(form)} ({COLUMNS.get(form, 'v DOUBLE')}) WITH ("
        f"connector = 'mqtt', endpoint = 'home', topic = '{topic_of(form)}', "
        f"format = '{form.value}'" + (f", rows = '{ROWS[form]}'" if form in ROWS else "") + ")"
        for form in FORMATS
    )
    return ";".join(
        [
            *by_format,
            f"CREATE SOURCE {name_of(PayloadFormat.FIELDS)} (v INTEGER) WITH (connector = 'sql', "
            "endpoint = 'plant', table = 'cells', watermark = 'id', interval = '0.1 s')",
            "CREATE SOURCE good (v INTEGER) WITH (connector = 'mqtt', endpoint = 'home', "
            "topic = 'good/a')",
        ]
    )


class Gateway:
    """A gateway process, and what it says of its sources."""

    def __init__(self, folder: Path, broker: BrokerProcess, database: Path) -> None:
        self.state: SiteState | None = None
        endpoints = {
            "home": {"connector": "mqtt", "address": broker.url},
            "plant": {"connector": "sql", "url": f"sqlite:///{database}"},
        }
        settings = GatewaySettings("demo", "gw-1", broker.url, str(folder), endpoints=endpoints)
        path = folder / "gw-1.json"
        path.write_bytes(msgspec.json.encode(settings))
        self.client = Client(CallbackAPIVersion.VERSION2, "test")
        self.client.on_message = self._heard
        self.client.connect("127.0.0.1", broker.port)
        self.client.subscribe(TOPICS.state("gw-1"), 1)
        self.client.loop_start()
        command = [sys.executable, "-m", "gateway", "--config", str(path)]
        with (folder / "gateway.log").open("w") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def _heard(self, _client: object, _userdata: object, message: MQTTMessage) -> None:
        self.state = decode_json(bytes(message.payload), SiteState)

    def source(self, name: str) -> DeclaredState:
        """Return how a source is doing; an empty state where the gateway has not said."""
        assert self.process.poll() is None, "the gateway has ended"
        declared = () if self.state is None else self.state.declared
        return next((each for each in declared if each.name == name), DeclaredState(name, 0))

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Publish, and wait for the acknowledgement."""
        self.client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(PATIENCE)

    def declare(self, definition: SourceDefinition) -> None:
        """Give the gateway a definition, as the coordinator does."""
        self.publish(TOPICS.source(definition.name), encode_order(definition), retain=True)

    def close(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.client.disconnect()
            self.client.loop_stop()


@contextlib.contextmanager
def gateway(folder: Path) -> Iterator[Gateway]:
    """Yield a gateway that serves all sources, and its database in `folder`."""
    database = folder / "plant.db"
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE cells (id INTEGER PRIMARY KEY, v)")
    (folder / "broker").mkdir()
    with BrokerProcess("embedded", folder / "broker") as broker:
        running = Gateway(folder, broker, database)
        try:
            wait(lambda: running.state is not None and running.state.online)
            catalog = Catalog(())
            for statement in parse_script(statements()):
                assert isinstance(statement, CreateSource)
                definition = define(statement, catalog)
                assert isinstance(definition, SourceDefinition)
                running.declare(definition)
            names = [*map(name_of, FORMATS), name_of(PayloadFormat.FIELDS), "good"]
            wait(lambda: all(running.source(n).endpoint for n in names))
            yield running
        finally:
            running.close()


def test_bad_payloads_of_every_format_are_counted_with_a_reason_and_others_go_on(
    tmp_path: Path,
) -> None:
    with gateway(tmp_path) as running:
        # Once a good reading has come everything is subscribed.
        def reads_good() -> bool:
            running.publish("good/a", b'{"v": 1}')
            return running.source("good").rows > 0

        wait(reads_good)
        for form in FORMATS:
            for _ in range(TIMES):
                running.publish(topic_of(form), BAD[form])
        with contextlib.closing(sqlite3.connect(tmp_path / "plant.db")) as connection, connection:
            connection.executemany("INSERT INTO cells (v) VALUES (?)", [(v,) for v in CELLS])
        for form in FORMATS:
            wait(lambda form=form: running.source(name_of(form)).bad >= TIMES)  # type: ignore[misc]
            told = running.source(name_of(form))
            assert (told.bad, bool(told.last_bad), told.problem) == (TIMES, True, ""), told
        fields = name_of(PayloadFormat.FIELDS)
        wait(lambda: running.source(fields).bad >= len(CELLS))
        assert running.source(fields).last_bad

        # A flood of everything, the worst and the too large among it; the good source goes on.
        before = running.source("good").rows
        for number, form in enumerate(FORMATS):
            worst = [LARGE[form][0], next(oversized(form))]
            for payload in (*hostile_payloads(form, number, FLOOD), *worst):
                if payload:
                    running.client.publish(topic_of(form), payload, qos=1)
            running.publish("good/a", b'{"v": 2}')
        wait(lambda: running.source("good").rows >= before + len(FORMATS))
        last = next(iter(reversed(FORMATS)))
        wait(lambda: running.source(name_of(last)).bad > TIMES)
        for form in FORMATS:
            assert running.source(name_of(form)).bad > TIMES, form
            assert not running.source(name_of(form)).problem, form
