"""The three queries of docs/network.md share one join, and the page shows what is printed of it.

Its figures are from an example: names of queries, nodes and counts of rows differ.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, blocks
from tests.end_to_end.federation import Federation, Row, federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

PAGE = ROOT / "docs" / "network.md"
STATEMENTS = [block.text for block in blocks(PAGE, "sql") if block.note == "shared"]
SHOWN = [block.text for block in blocks(PAGE, "text")]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder: Path = tmp_path_factory.mktemp("shared")
    with federation(folder / "data", "--no-spark") as running:
        yield running


def nodes(up: Federation) -> dict[str, dict[str, object]]:
    return {node["node"]: node for node in up.http.get("/api/network").json()["nodes"]}


def taken_of(rows: set[Row]) -> set[Row]:
    """Return the hosts at which somebody sits, of rows of the first query."""
    return {(host,) for _, host, weight in rows if not weight < 5.0}


def cells(table: str) -> list[str]:
    """Return the words of the first four columns of a table's body; a wide terminal has more."""
    lines = [line.split("│")[1:5] for line in table.splitlines() if line.startswith("│")]
    return [" ".join(" ".join(column).split()) for column in zip(*lines, strict=True)]


def test_three_queries_share_a_join_and_leave_nothing(up: Federation) -> None:
    up.until(lambda: up.query("map-visitors").get("settled"))  # the last one that the map starts
    before = nodes(up)
    whole, taken, counts = (up.start_query(text) for text in STATEMENTS)
    up.until(lambda: all(up.query(query)["settled"] for query in (whole, taken, counts)))
    up.until(lambda: up.rows(whole) and taken_of(up.rows(whole)) == up.rows(taken))
    up.until(lambda: {row[0] for row in up.rows(counts)} == {len(up.rows(whole))})

    told = up.http.get(f"/api/queries/{taken}/explain").json()["text"]
    number, names = whole.removeprefix("q"), {"q12": whole, "q14": counts}
    shown = next(text for text in SHOWN if text.startswith("Fragment f0"))
    for line in shown.replace("node 12", f"node {number}").splitlines():
        if line != "…":
            wanted = re.sub(r"q1[24]", lambda found: names[found[0]], line)
            assert wanted in told.splitlines(), told
    table = next(text for text in SHOWN if "┏" in text)
    printed = up.pando("network", "--most", "3")
    assert printed.returncode == 0, printed.stderr
    numbers = {"12": number, "11": str(int(number) - 1)}  # a node is made right before its query
    shown = re.sub(r"\b1[12](?=/f|\b)", lambda found: numbers[found[0]], table)
    assert cells(printed.stdout) == cells(shown)

    up.stop_query(whole)
    kept = up.until(lambda: nodes(up).get(number))
    assert kept["direct"] == 0
    assert up.rows(taken)
    up.stop_query(taken)
    up.stop_query(counts)
    up.until(lambda: not nodes(up).keys() - before.keys())
