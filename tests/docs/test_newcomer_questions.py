"""Questions of a new user are answered in docs/, at the place the table names."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from building.osm.osm_indoor import read_osm_indoor
from gateway.connectors.testing.source_statements import definitions_of
from gateway.gateway_settings import GatewaySettings
from streamsql.mapping.assignment import Assigned, assignment
from tests.docs.markdown import ROOT, blocks

DOCS = ROOT / "docs"
TABLE = Path(__file__).with_name("newcomer_questions.md")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)


class Question(NamedTuple):
    """A question, and the page, heading and phrase that answer it."""

    number: int
    text: str
    page: str
    heading: str
    phrase: str


QUESTIONS = [Question(int(number), *rest) for number, *rest in _ROW.findall(TABLE.read_text())]


def _section(page: str, heading: str) -> str:
    """Return the text under a heading, up to the next one of the same or a higher level."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert found, f"{page} has no heading {heading!r}"
    rest = text[found.end() :]
    outside = re.sub(
        r"^```.*?^```$", lambda m: " " * len(m[0]), rest, flags=re.MULTILINE | re.DOTALL
    )
    end = re.search(rf"^#{{1,{len(found[1])}}} ", outside, re.MULTILINE)
    return rest[: end.start()] if end else rest


def test_the_questions_are_numbered() -> None:
    assert [question.number for question in QUESTIONS] == list(range(1, 36))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: str(question.number))
def test_the_question_is_answered_where_the_table_says(question: Question) -> None:
    section = " ".join(_section(question.page, question.heading).split())
    assert question.phrase in section, question.text


def test_the_settings_file_of_the_page_is_a_gateways() -> None:
    (whole,) = blocks(DOCS / "gateways.md", "json")
    settings = msgspec.convert(json.loads(whole.text), GatewaySettings)
    assert list(settings.endpoints) == ["home", "meters"]
    (statement,) = blocks(DOCS / "gateways.md", "sql")
    (source,) = definitions_of(statement.text)
    kinds = {name: endpoint["connector"] for name, endpoint in settings.endpoints.items()}
    assert source.mapping is not None
    assert assignment(source.mapping, settings.gateway, kinds) == Assigned("meters")


def test_the_floor_plan_of_the_page_is_a_building(tmp_path: Path) -> None:
    plans = [b for b in blocks(DOCS / "operations.md", "json") if "FeatureCollection" in b.text]
    assert len(plans) == 1
    file = tmp_path / "building.geojson"
    file.write_text(plans[0].text)
    site = read_osm_indoor(file)
    assert [space.name for space in site.spaces] == ["Lab 1", "Hall"]
