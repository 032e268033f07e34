"""Random scripts give equal answers on every engine and any number of sites (streamsql.md)."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from deploy.session import LocalSession
from streamsql.data.types import Row
from tests.deploy.session.scripts import SCHEMA, queries, scripts


def answers(engine: str, sites: int, script: list[str], asked: list[str]) -> list[tuple[Row, ...]]:
    with contextlib.closing(LocalSession(engine, sites)) as session:
        session.run(SCHEMA)
        session.run("\n".join(script))
        return [session.run(query)[0].rows for query in asked]


@given(scripts, st.lists(queries, min_size=1, max_size=3))
def test_any_script_gives_one_answer(script: list[str], asked: list[str]) -> None:
    expected = answers("reference", 1, script, asked)
    for sites in (1, 2, 3):
        assert answers("stream", sites, script, asked) == expected, sites
