"""The page that compares the syntax of devices counts right, and its statement is one."""

import json
import re
import tomllib

import pytest

from tests.docs.markdown import ROOT
from tests.streamsql.from_text import catalog_of

PAGE = (ROOT / "docs" / "decisions" / "0062-one-line-a-column.md").read_text("utf-8")
COUNTED = re.findall(r"^\| (\w[\w ]*) \| (\d+) \| (\d+) \|", PAGE, re.MULTILINE)


def text_of(system: str) -> str:
    """Return the first block of code in a system's section."""
    section = PAGE.partition(f"## {system}\n")[2]
    found = re.search(r"```\w+\n(.*?)\n```", section, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(("system", "lines", "characters"), COUNTED)
def test_lines_and_characters(system: str, lines: str, characters: str) -> None:
    written = [line for line in text_of(system).split("\n") if line.strip()]
    assert (len(written), sum(map(len, written))) == (int(lines), int(characters))


def test_ours_is_the_shortest() -> None:
    assert len(COUNTED) == 5
    ours, *others = [(int(lines), int(characters)) for _system, lines, characters in COUNTED]
    assert all(ours[0] < lines and ours[1] < characters for lines, characters in others)


def test_the_statement_declares_the_device() -> None:
    (meter,) = (s for s in catalog_of(text_of("Pando")).sources if s.name == "meter")
    assert meter.units == ("", "kWh", "")
    assert (meter.key, meter.time_column) == ((0,), 2)


def test_what_can_be_parsed_is_well_formed() -> None:
    assert tomllib.loads(text_of("Telegraf"))["processors"]["scale"]
    assert json.loads(text_of("ThingsBoard Gateway"))["converter"]["timeseries"]
    compile(text_of("Pathway"), "pathway", "exec")
