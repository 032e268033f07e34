"""The page on payloads: every payload gives the rows and problems that stand beneath it."""

import csv
import io
import re

import pytest

from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Value
from streamsql.mapping.mapper import Mapper
from streamsql.mapping.topic_pattern import TopicPattern
from streamsql.mapping.units import UNIT_NAMES, unit_conversion, unit_named
from streamsql.syntax import CreateSource, parse_script
from tests.docs.markdown import ROOT

PAGE = ROOT / "docs" / "mapping.md"
ARRIVAL = 1_780_000_000_000_000
EXAMPLES = re.findall(
    r"^```sql\n(.*?)^```\n+```payload ?([^\n]*)\n(.*?)\n```\n+```text\n(.*?)^```",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


def definition_of(statement: str) -> SourceDefinition:
    (parsed,) = parse_script(statement)
    assert isinstance(parsed, CreateSource)
    definition = define(parsed, Catalog())
    assert isinstance(definition, SourceDefinition)
    return definition


def rows_of(statement: str, topic: str, payload: bytes) -> str:
    """Return the rows of a payload as CSV, and behind them the problems."""
    definition = definition_of(statement)
    assert definition.mapping is not None
    pattern = definition.mapping.option("topic")
    levels = TopicPattern(pattern).facts(topic) if pattern and topic else {}
    assert levels is not None, f"{topic} does not match {pattern}"
    facts: dict[str, Value] = {**levels, "topic": topic, "retained": False}
    mapped = Mapper(definition).map(payload, facts, ARRIVAL)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(definition.schema.names)
    for row in mapped.rows:
        shown = definition.schema.to_object(tuple(row[name] for name in definition.schema.names))
        writer.writerow(shown.values())
    problems = [f"problem: {problem}\n" for problem in mapped.problems]
    return written.getvalue() + "".join(problems) + ("ignored\n" if mapped.ignored else "")


def test_the_page_has_an_example_of_every_format() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("```payload") == len(EXAMPLES) > 12
    formats = {found for text, *_ in EXAMPLES for found in re.findall(r"format = '([^']+)'", text)}
    assert formats == {"text", "csv", "cbor", "senml", "sparkplug", "xml", "html"}


@pytest.mark.parametrize(("statement", "topic", "payload", "rows"), EXAMPLES)
def test_a_payload_gives_the_rows_beneath_it(
    statement: str, topic: str, payload: str, rows: str
) -> None:
    is_hex = topic.startswith("hex")
    data = bytes.fromhex(payload) if is_hex else payload.encode()
    assert rows_of(statement, topic.removeprefix("hex").strip(), data) == rows


def test_the_table_of_units_is_whole_and_right() -> None:
    table = re.findall(r"^\| `(\S+)` \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {primary: set(re.findall(r"`([^`]+)`", others)) for primary, others in table}
    assert len(listed) > 50
    for primary, others in listed.items():
        for name in others:
            assert unit_named(name).primary == primary
            assert unit_conversion(name, primary)[0] > 0
    # One that is not on the page is no unit: the error's text says that it lists all.

    assert {name for others in listed.values() for name in others} | listed.keys() == UNIT_NAMES
