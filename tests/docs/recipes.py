"""Recipes of docs/devices.md: a section's endpoint, statement and rows."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.docs.markdown import ROOT

_DEVICES = ROOT / "docs" / "devices.md"


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a section says.

    Attributes:
        endpoint: Settings of its one endpoint, without "connector".
        statement: CREATE SOURCE.
        rows: As CSV, the names of the columns first.
    """

    endpoint: dict[str, object]
    statement: str
    rows: str


def recipe(heading: str) -> Recipe:
    """Return the recipe under a heading."""
    text = _DEVICES.read_text(encoding="utf-8")
    _, found, section = text.partition(f"### {heading}\n")
    assert found, f"{_DEVICES} has no section {heading}"
    section = re.split(r"^#{1,3} ", section, maxsplit=1, flags=re.MULTILINE)[0]
    assert len(section.splitlines()) <= 40, "a recipe has at most 40 lines"
    (endpoint,) = json.loads(_block(section, "json")).values()
    del endpoint["connector"]
    return Recipe(endpoint, _block(section, "sql"), _block(section, "text"))


def as_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as recipes show them."""
    given = [{name: _shown(value) for name, value in row.items()} for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, given[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(given)
    return text.getvalue()


def _shown(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _block(section: str, language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"{len(found)} blocks of {language}"
    return str(found[0])
