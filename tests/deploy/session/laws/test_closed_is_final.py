"""What EMIT ON WINDOW CLOSE has given stays, whatever happens to stored tables afterwards."""

import contextlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploy.session import LocalSession
from streamsql.data.types import Row

DEFINITIONS = """
CREATE SOURCE t (k TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '3 s');
CREATE TABLE owners (k TEXT, owner TEXT);
"""
QUERY = """
SELECT owner, window_end, COUNT(*) AS n
FROM HOP(t, ts, INTERVAL '5 s', INTERVAL '10 s') LEFT JOIN owners USING (k)
GROUP BY owner, window_start, window_end EMIT ON WINDOW CLOSE;
"""

keys = st.sampled_from("ab")
readings = st.builds(
    lambda k, second: f"INSERT INTO t VALUES ('{k}', '2026-01-01T00:00:{second:02}Z');",
    keys,
    st.integers(0, 40),
)
owners = st.builds(
    lambda k, owner: f"INSERT INTO owners VALUES ('{k}', '{owner}');", keys, st.sampled_from("xy")
)
gone = st.builds(lambda k: f"DELETE FROM owners WHERE k = '{k}';", keys)


def answers(script: list[str], engine: str, sites: int) -> list[list[Row]]:
    with contextlib.closing(LocalSession(engine, sites)) as session:
        session.run(DEFINITIONS)
        found = []
        for line in script:
            session.run(line)
            (result,) = session.run(QUERY)
            found.append(sorted(result.rows, key=repr))
        return found


@settings(max_examples=20, deadline=None)
@given(st.lists(readings | readings | owners | gone, min_size=1, max_size=10))
def test_tables_that_change_do_not_change_what_has_closed(script: list[str]) -> None:
    by_definition = answers(script, "reference", 1)
    assert answers(script, "stream", 1) == by_definition
    assert answers(script[:6], "stream", 3) == by_definition[:6]
    for before, after in itertools.pairwise(by_definition):
        assert all(row in after for row in before)


CLOSING = {
    "anti join": "SELECT window_end, COUNT(*) AS n FROM TUMBLE(t, ts, INTERVAL '10 s') "
    "WHERE k NOT IN (SELECT k FROM owners) GROUP BY window_start, window_end",
    "session": "SELECT k, window_end, COUNT(*) AS n FROM SESSION(t, ts, INTERVAL '4 s', k) "
    "GROUP BY k, window_start, window_end",
}


@pytest.mark.parametrize("batch", [1, 3, 7, 60])
@pytest.mark.parametrize("query", CLOSING.values(), ids=CLOSING)
def test_every_window_is_whole_on_any_number_of_sites(query: str, batch: int) -> None:
    rows = [
        f"('{k}', '2026-01-01T00:{second // 60:02}:{second % 60:02}Z')"
        for second, k in zip(range(0, 120, 2), itertools.cycle("abcdxy"), strict=False)
    ]
    readings = [f"INSERT INTO t VALUES {', '.join(b)};" for b in batched(rows, batch)]
    script = DEFINITIONS + "INSERT INTO owners VALUES ('x', 'ann');" + "".join(readings)

    def answer(engine: str, sites: int) -> list[Row]:
        with contextlib.closing(LocalSession(engine, sites)) as session:
            session.run(script)
            (result,) = session.run(f"{query} EMIT ON WINDOW CLOSE;")
            return sorted(result.rows, key=repr)

    expected = answer("reference", 1)
    assert len(expected) > 10
    for sites in range(1, 6):
        assert answer("stream", sites) == expected, sites


def batched(rows: list[str], size: int) -> list[list[str]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]
