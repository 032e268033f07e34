"""A window after a view that selects rows and columns: the same as in the view, and what is not."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.testing.circuit_runs import LocalRun
from streamsql.catalog.catalog import Catalog
from streamsql.data.events import SourceEvent
from streamsql.errors import QueryError
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
TTL = 20 * SECOND
CATALOG = """
CREATE LINK SOURCE sighting (badge TEXT, room TEXT, rssi DOUBLE) WITH (ttl = '20 s');
CREATE SOURCE wifi (client TEXT, ap TEXT, signal DOUBLE) WITH (ttl = '20 s');
CREATE TABLE receiver (receiver TEXT, room TEXT);
CREATE VIEW heard (badge, receiver, rssi) AS SELECT badge, room, rssi FROM sighting;
CREATE VIEW loud (receiver, level) AS SELECT ap, signal + 100 FROM wifi WHERE signal > -70;
CREATE VIEW louder AS SELECT receiver, level FROM loud WHERE level > 40;
CREATE VIEW either (badge, receiver) AS
  SELECT badge, room FROM sighting UNION ALL SELECT client, ap FROM wifi [UNBOUNDED];
CREATE VIEW renamed (who, place, level) AS SELECT client, ap, signal FROM wifi;
CREATE VIEW newest AS SELECT client, ap FROM wifi [RANGE 5 SECONDS];
CREATE VIEW named AS SELECT w.client, r.room FROM wifi w JOIN receiver r ON r.receiver = w.ap;
CREATE VIEW places AS SELECT room FROM receiver;
"""
SAME = {
    "SELECT * FROM heard [RANGE 10 SECONDS]": "SELECT badge, room, rssi FROM sighting "
    "[RANGE 10 SECONDS]",
    "SELECT level FROM louder [RANGE 10 SECONDS SLIDE 4 SECONDS]": "SELECT signal + 100 FROM wifi "
    "[RANGE 10 SECONDS SLIDE 4 SECONDS] WHERE signal > -70 AND signal + 100 > 40",
    "SELECT receiver FROM loud [NOW]": "SELECT ap FROM wifi [NOW] WHERE signal > -70",
    "SELECT * FROM either [RANGE 3 SECONDS]": "SELECT badge, room FROM sighting [RANGE 3 SECONDS] "
    "UNION ALL SELECT client, ap FROM wifi [RANGE 3 SECONDS]",
    "SELECT level FROM renamed [PARTITION BY place ROWS 2]": "SELECT signal FROM wifi "
    "[PARTITION BY ap ROWS 2]",
    "SELECT a, b FROM (SELECT ap AS a, client AS b FROM wifi WHERE signal < -60) "
    "[RANGE 9 SECONDS] AS q": "SELECT ap, client FROM wifi [RANGE 9 SECONDS] WHERE signal < -60",
    "WITH w AS (SELECT ap FROM wifi) SELECT ap FROM w [RANGE 9 SECONDS]": "SELECT ap FROM wifi "
    "[RANGE 9 SECONDS]",
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return catalog_of(CATALOG)


_NAMES = st.sampled_from(("a", "b"))
_LEVELS = st.sampled_from((-75.0, -65.0, -55.0, None))
_EVENTS = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 4, 11)),
        st.sampled_from(("sighting", "wifi")),
        st.tuples(_NAMES, _NAMES, _LEVELS),
        st.integers(0, 3),
    ),
    max_size=15,
)


@pytest.mark.parametrize("text", SAME)
@settings(max_examples=40, deadline=None)
@given(events=_EVENTS)
def test_it_is_the_window_on_the_streams(
    text: str, catalog: Catalog, events: list[tuple[int, str, tuple[object, ...], int]]
) -> None:
    run = LocalRun(bound_query(text, catalog).plan)
    by_hand = LocalRun(bound_query(SAME[text], catalog).plan)
    now = 0
    for passed, source, row, age in [*events, (30, "wifi", ("a", "a", -55.0), 0)]:
        now += passed * SECOND
        event = SourceEvent(row, now - age * SECOND)  # type: ignore[arg-type]
        shown = run.step(now, [(source, event)])
        by_hand.step(now, [(source, event)])
        assert shown == run.expected(now) == by_hand.expected(now)


@given(events=_EVENTS)
def test_a_row_of_a_view_is_as_old_as_its_reading(
    catalog: Catalog, events: list[tuple[int, str, tuple[object, ...], int]]
) -> None:
    run = LocalRun(bound_query("SELECT * FROM loud [RANGE 10 SECONDS]", catalog).plan)
    now, heard = 0, []
    for passed, _source, row, age in events:
        now += passed * SECOND
        ts = now - age * SECOND
        run.step(now, [("wifi", SourceEvent(row, ts))])  # type: ignore[arg-type]
        heard.append((row, ts))
        expected = Counter(
            (r[1], r[2] + 100)  # type: ignore[operator]
            for r, time in heard
            if time > now - 10 * SECOND and r[2] is not None and r[2] > -70  # type: ignore[operator]
        )
        assert run.output == expected


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("SELECT * FROM loud [ROWS 5]", "ROWS counts the rows of a stream", "RANGE"),
        ("SELECT * FROM either [ROWS 5]", "ROWS counts the rows of a stream", "RANGE"),
        ("SELECT * FROM newest [RANGE 3 SECONDS]", "it has a window inside", "or this one"),
        ("SELECT * FROM named [RANGE 3 SECONDS]", "a derived row expires", "after the stream"),
        ("SELECT * FROM places [RANGE 3 SECONDS]", "do not expire", "remove the window"),
    ],
)
def test_refused(text: str, message: str, hint: str, catalog: Catalog) -> None:
    with pytest.raises(QueryError) as caught:
        bound_query(text, catalog)
    assert "but only streams have windows" in caught.value.message
    assert message in caught.value.message
    assert hint in caught.value.hint
