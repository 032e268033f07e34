"""The recipes of docs/devices.md: messages published on a real broker give the rows shown."""

import asyncio
import contextlib
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf import text_format  # type: ignore[import-untyped]

from broker.broker_testing import BrokerProcess
from gateway.connectors.mqtt.mqtt_connector import MqttConnector
from gateway.connectors.testing.source_statements import definitions_of
from host.mqtt import open_client
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType, Value, display
from tests.docs.markdown import ROOT, WALK, Block, blocks
from tests.docs.recipes import RUN_BY, recipe, statement
from tests.gateway.connectors.serving import Served, serving, until
from tests.streamsql.mapping.sparkplug.written import PAYLOAD

pytestmark = pytest.mark.broker

PAGE = ROOT / "docs" / "devices.md"


@dataclass(frozen=True)
class Recipe:
    """A section: its statements, what the devices publish, and the rows that come of it."""

    sql: Block
    messages: tuple[tuple[str, bytes], ...]
    rows: str

    def __str__(self) -> str:
        return self.sql.text.split("(")[0].split()[-1]


def recipes() -> Iterator[Recipe]:
    statements = list(blocks(PAGE, "sql"))
    for published in blocks(PAGE, "mqtt"):
        sql = max((b for b in statements if b.line < published.line), key=lambda b: b.line)
        lines = published.text.splitlines()
        yield Recipe(sql, tuple(_message(line) for line in lines), published.answer)


def _message(line: str) -> tuple[str, bytes]:
    """Split a line into topic and payload; a topic may hold blanks, as a payload in JSON does.

    Payloads of Sparkplug stand there in the text format of protobuf.
    """
    if line.startswith("spBv1.0/"):
        topic, _, text = line.partition(" ")
        payload: bytes = text_format.Parse(text, PAYLOAD()).SerializeToString()
        return topic, payload
    begin = line.find(" {")
    topic, _, text = line.rpartition(" ") if begin < 0 else (line[:begin], "", line[begin + 1 :])
    return topic, text.encode()


def shown(value: object, dtype: DataType) -> str:
    """Return a value as the page prints it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    assert isinstance(value, int | float | str)
    text = str(display(value, dtype))
    return text.removesuffix("Z").replace("T", " ") if dtype == DataType.TIMESTAMP else text


def relation(served: Served, definition: SourceDefinition) -> list[list[str]]:
    """Return what the source holds after all that was emitted: the newest row of each key."""
    names, dtypes = definition.schema.names, definition.schema.dtypes
    held: dict[tuple[object, ...], list[str]] = {}
    for reading in served.readings:
        if reading.source != definition.name:
            continue
        columns = definition.key or range(len(names))  # without key every row counts
        key = tuple(reading.values.get(names[position]) for position in columns)
        if reading.matching:
            given = {names.index(name): value for name, value in reading.values.items()}
            held = {
                key: row
                for key, row in held.items()
                if any(row[p] != shown(value, dtypes[p]) for p, value in given.items())
            }
            continue
        if reading.delete:
            held.pop(key, None)
            continue
        held[key] = [
            shown(reading.values.get(name), dtype)
            for name, dtype in zip(names, dtypes, strict=True)
        ]
    return sorted(held.values())


def printed(served: Served, definitions: list[SourceDefinition]) -> str:
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    for definition in definitions:
        writer.writerow(definition.schema.names)
        writer.writerows(relation(served, definition))
    return output.getvalue()


CREATED = re.compile(r"^CREATE (?:LINK )?SOURCE (\w+)", re.MULTILINE)


def test_what_devices_publish_gives_rows() -> None:
    assert all(told.messages and told.rows for told in recipes())


def test_each_statement_of_the_page_is_run_by_a_test() -> None:
    """By its messages, by the test that the registry names, as a step of the walk, or locally."""
    published = {told.sql.line for told in recipes()}
    others = [b for b in blocks(PAGE, "sql") if b.note == "" and b.line not in published]
    created = [CREATED.findall(block.text) for block in others]
    assert [names for names in created if len(names) != 1] == []
    assert {name for (name,) in created} == set(RUN_BY)
    assert {block.note for block in blocks(PAGE, "sql")} == {"", WALK, "local"}


@pytest.mark.parametrize("name", RUN_BY)
def test_the_registry_names_tests_that_run_the_statement(name: str) -> None:
    file, _, function = RUN_BY[name].partition("::")
    source = (ROOT / "tests" / "docs" / f"{file}.py").read_text(encoding="utf-8")
    _, found, body = source.partition(f"def {function}(")
    assert found
    body = re.split(r"^(?:async )?def |^@", body, maxsplit=1, flags=re.MULTILINE)[0]
    asked = re.search(r"""\b(recipe|statement)\("([^"]+)"\)""", body)
    assert asked
    text = recipe(asked[2]).statement if asked[1] == "recipe" else statement(asked[2])
    assert CREATED.findall(text) == [name]


def test_a_name_of_the_page_stands_for_one_statement() -> None:
    """So that a reader can use all recipes together; the walk shows one of them again."""
    known: dict[str, str] = {}
    for block in blocks(PAGE, "sql"):
        if block.note == "local":
            continue
        for text in re.split(r";\n", block.text):
            for name in CREATED.findall(text):
                told = " ".join(text.rstrip("; \n").split())
                assert known.setdefault(name, told) == told, name
    assert len(known) > 30


@pytest.mark.parametrize("told", list(recipes()), ids=str)
def test_a_recipe_gives_its_rows(told: Recipe, tmp_path: Path) -> None:
    definitions = definitions_of(told.sql.text)
    served = Served()

    async def scenario(url: str) -> None:
        text = told.sql.text
        async with serving(MqttConnector(), {"address": url}, text, served=served):
            await until(lambda: "subscribed" in " ".join(served.notes))
            client = open_client(url, "device")
            await client.connect()
            for topic, payload in told.messages:
                client.publish(topic, payload)
            with contextlib.suppress(TimeoutError):  # the rows tell more than the time
                await until(lambda: printed(served, definitions) == told.rows, 10)
            await client.close()

    with BrokerProcess("mosquitto", tmp_path) as broker:
        asyncio.run(scenario(broker.url))
    assert printed(served, definitions) == told.rows
    assert not served.problems


def test_values_are_printed_as_on_the_page() -> None:
    values: list[tuple[Value, DataType, str]] = [
        (True, DataType.BOOLEAN, "true"),
        (1.0, DataType.DOUBLE, "1.0"),
        (1_780_308_000_000_000, DataType.TIMESTAMP, "2026-06-01 10:00:00"),
    ]
    assert [shown(value, dtype) for value, dtype, _ in values] == [text for *_, text in values]
