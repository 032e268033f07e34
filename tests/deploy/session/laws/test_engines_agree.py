"""Random scripts give equal answers on every engine and any number of sites (streamsql.md)."""

import contextlib

from hypothesis import example, given, settings
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


CHANGED = "ISTREAM (SELECT k FROM passing)"
CLOCKED = """
CREATE SOURCE kept (k TEXT, v INTEGER) WITH (ttl = '3 s');
CREATE SOURCE passing (k TEXT, v INTEGER);
ADVANCE TIME TO '2026-01-01T00:00:00Z';
"""
_clocked_changes = st.one_of(
    st.sampled_from((0.1, 0.5, 0.7, 1, 2)).map(lambda s: f"ADVANCE TIME BY '{s} s';"),
    st.builds(
        "INSERT INTO {} VALUES ('{}', {});".format,
        st.sampled_from(("kept", "passing")),
        st.sampled_from("ab"),
        st.integers(0, 2),
    ),
)
_streams = st.builds(
    "{} (SELECT x.k, COUNT(*) AS n FROM {} x {} GROUP BY x.k)".format,
    st.sampled_from(("ISTREAM", "DSTREAM", "RSTREAM")),
    st.sampled_from(("kept", "passing", "passing [RANGE 1 SECONDS]", "passing [NOW]")),
    st.sampled_from(("", "JOIN kept y ON y.k = x.k")),
)


@settings(max_examples=25)
@given(st.lists(_clocked_changes, min_size=1, max_size=8), _streams)
@example(["INSERT INTO passing VALUES ('a', 0);", "ADVANCE TIME BY '0.1 s';"], CHANGED)
def test_streams_by_the_clock_are_as_of_now_at_every_site(script: list[str], asked: str) -> None:
    """Without watermarks an instant is over when the clocks of all sites have passed it."""
    expected = clocked_answer("reference", 1, script, asked)
    for sites in (1, 2, 3):
        assert clocked_answer("stream", sites, script, asked) == expected, sites


def clocked_answer(engine: str, sites: int, script: list[str], asked: str) -> tuple[Row, ...]:
    with contextlib.closing(LocalSession(engine, sites)) as session:
        session.run(CLOCKED)
        session.run("\n".join(script))
        return session.run(asked)[0].rows
