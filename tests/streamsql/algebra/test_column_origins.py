"""Where columns come from: through operators, and no further than the values are the same."""

import pytest

from streamsql.algebra.column_origins import column_origins, column_units
from tests.streamsql.from_text import bound_query, catalog_of

SCHEMA = """
CREATE SOURCE climate (device TEXT, temperature DOUBLE, ts TIMESTAMP, KEY (device));
CREATE TABLE desks (desk TEXT PRIMARY KEY, device TEXT);
CREATE VIEW warm AS SELECT device, temperature FROM climate WHERE temperature > 20;
"""
DEVICE, TEMPERATURE = ("climate", 0), ("climate", 1)


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        ("SELECT * FROM climate", (DEVICE, TEMPERATURE, ("climate", 2))),
        ("SELECT temperature AS t FROM warm", (TEMPERATURE,)),
        ("SELECT temperature + 1 AS t FROM warm", (None,)),
        (
            "SELECT d.desk, c.temperature FROM climate c JOIN desks d ON c.device = d.device",
            (("desks", 0), TEMPERATURE),
        ),
        (
            "SELECT device, AVG(temperature) AS t, COUNT(*) AS n FROM climate GROUP BY device",
            (DEVICE, TEMPERATURE, None),
        ),
        ("SELECT temperature FROM climate UNION ALL SELECT temperature FROM warm", (TEMPERATURE,)),
        ("SELECT device AS x FROM climate UNION ALL SELECT desk FROM desks", (None,)),
        ("SELECT DISTINCT temperature FROM climate", (TEMPERATURE,)),
        ("ISTREAM(SELECT device, temperature FROM climate)", (DEVICE, TEMPERATURE, None)),
        ("SELECT device FROM climate ORDER BY temperature LIMIT 3", (DEVICE,)),
        ("SELECT 1 AS one", (None,)),
    ],
)
def test_origins(text: str, origins: tuple[tuple[str, int] | None, ...]) -> None:
    assert column_origins(bound_query(text, catalog_of(SCHEMA)).plan) == origins


METERS = """
CREATE SOURCE climate (device TEXT, temp DOUBLE UNIT 'Cel', note TEXT, KEY (device))
  WITH (connector = 'mqtt', topic = 'a/{device}');
CREATE SOURCE power (device TEXT, watts DOUBLE UNIT 'W') WITH (connector = 'mqtt', topic = 'b');
"""


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("SELECT * FROM climate", ("", "Cel", "")),
        ("SELECT AVG(temp), COUNT(temp), MAX(temp) - MIN(temp) FROM climate", ("Cel", "", "")),
        (
            "SELECT watts AS w, temp AS t FROM climate c JOIN power p ON c.device = p.device",
            ("W", "Cel"),
        ),
        ("ISTREAM(SELECT temp FROM climate)", ("Cel", "")),
        ("SELECT temp FROM climate UNION ALL SELECT watts FROM power", ("",)),
    ],
)
def test_units(text: str, units: tuple[str, ...]) -> None:
    assert column_units(bound_query(text, catalog_of(METERS)).plan) == units
