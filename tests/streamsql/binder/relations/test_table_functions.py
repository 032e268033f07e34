"""TUMBLE, HOP and SESSION in FROM, and all windows behind streams."""

import pytest

from streamsql.algebra.operators import (
    HopWindow,
    Plan,
    SessionWindow,
    Window,
    WindowKind,
    walk_plan,
)
from streamsql.catalog.catalog import Catalog
from streamsql.errors import BindingError, QueryError
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
CATALOG = """
CREATE SOURCE s (k TEXT, v DOUBLE, ts TIMESTAMP);
CREATE TABLE hours (k TEXT, t TIMESTAMP);
CREATE VIEW calm AS SELECT k, ts FROM s [RANGE 10 MINUTES] WHERE v < 1;
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return catalog_of(CATALOG)


def plan_of(text: str, catalog: Catalog) -> Plan:
    return bound_query(text, catalog).plan


def window_of(text: str, catalog: Catalog) -> HopWindow | SessionWindow | Window:
    found = [
        node
        for node in walk_plan(plan_of(text, catalog))
        if isinstance(node, HopWindow | SessionWindow | Window)
    ]
    return found[0]


@pytest.mark.parametrize(
    ("written", "size", "hop", "offset"),
    [
        ("TUMBLE(s, ts, INTERVAL '1 minute')", 60, 60, 0),
        ("tumble(s, s.ts, '90 s')", 90, 90, 0),
        ("TUMBLE(s, ts, INTERVAL '1 minute', INTERVAL '70 s')", 60, 60, 10),
        ("HOP(s, ts, INTERVAL '10 s', INTERVAL '1 minute')", 60, 10, 0),
        ("HOP(s AS x, x.ts, INTERVAL '10 s', INTERVAL '1 minute', INTERVAL '3 s')", 60, 10, 3),
    ],
)
def test_hops(written: str, size: int, hop: int, offset: int, catalog: Catalog) -> None:
    window = window_of(f"SELECT * FROM {written}", catalog)
    assert isinstance(window, HopWindow)
    assert window.time == 2
    found = (window.size, window.hop, window.offset)
    assert found == (size * SECOND, hop * SECOND, offset * SECOND)
    assert window.schema.names == ("k", "v", "ts", "window_start", "window_end")


def test_session(catalog: Catalog) -> None:
    window = window_of("SELECT * FROM SESSION(s, ts, INTERVAL '5 s', k, v, k)", catalog)
    assert isinstance(window, SessionWindow)
    assert (window.time, window.gap, window.partition) == (2, 5 * SECOND, (0, 1))


@pytest.mark.parametrize(
    "relation",
    ["s", "s [RANGE 1 HOUR]", "calm", "hours AS s(k, ts)", "(SELECT k, ts FROM s)", "common"],
)
def test_over_any_relation(relation: str, catalog: Catalog) -> None:
    text = f"""
        WITH common AS (SELECT k, ts FROM s)
        SELECT w.k, w.window_end, COUNT(*) AS n
        FROM TUMBLE({relation}, ts, INTERVAL '1 minute') AS w JOIN hours ON hours.k = w.k
        GROUP BY w.k, w.window_end"""
    assert any(isinstance(node, HopWindow) for node in walk_plan(plan_of(text, catalog)))


def test_the_inner_name_is_kept_unless_another_is_given(catalog: Catalog) -> None:
    plan_of("SELECT s.window_start FROM TUMBLE(s, ts, '1 s')", catalog)
    with pytest.raises(BindingError, match="no relation 's'"):
        plan_of("SELECT s.window_start FROM TUMBLE(s, ts, '1 s') AS w", catalog)


def test_a_recursion_may_read_it_and_be_read_by_it(catalog: Catalog) -> None:
    step = "SELECT n.k, n.ts FROM TUMBLE(s, ts, '1 s') AS n JOIN r ON n.k = r.k"
    text = f"WITH RECURSIVE r(k, ts) AS (SELECT k, ts FROM s UNION {step}) SELECT * FROM "
    plan_of(text + "TUMBLE(r, ts, '1 s')", catalog)


REFUSED = [
    ("TUMBLE(s, ts)", "does not take these arguments", "INTERVAL '1 minute'"),
    ("TUMBLE(s, ts, '1 s', '1 s', '1 s')", "does not take these arguments", "TUMBLE(s, ts"),
    ("HOP(s, ts, INTERVAL '1 s')", "does not take these arguments", "hop, then size"),
    ("TUMBLE(s, k, INTERVAL '1 s')", "needs a TIMESTAMP column here, but this is TEXT", "ts"),
    ("TUMBLE(s, ts + INTERVAL '1 s', '1 s')", "but this is no column", "a query"),
    ("TUMBLE(s, ts, 5)", "constant duration", "INTERVAL"),
    ("TUMBLE(s, ts, INTERVAL '0 s')", "longer than 0", "INTERVAL"),
    ("SESSION(s, ts, INTERVAL '5 s', k || 'x')", "the keys of SESSION must be columns", "key"),
    (
        "HOP(s, ts, INTERVAL '1 s', INTERVAL '9000 h')",
        "in 32400000 windows",
        "HOP takes first the hop, then the size",
    ),
    ("TUMBLE(s, ts, '1 s') [ROWS 5]", "takes no window after it", "inside"),
    (
        "TUMBLE(TUMBLE(s, ts, '1 s'), ts, '1 s')",
        "but the relation already has a column of that name",
        "rename it",
    ),
    ("TUMBLE(nowhere, ts, '1 s')", "there is no source, table or view 'nowhere'", ""),
    ("TUMBLE(s, ts, '1 s'", "expected )", ""),
]


@pytest.mark.parametrize("case", REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals(case: tuple[str, str, str], catalog: Catalog) -> None:
    written, message, hint = case
    with pytest.raises(QueryError) as caught:
        plan_of(f"SELECT * FROM {written}", catalog)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.span is not None


def test_no_window_over_the_recursion_being_defined(catalog: Catalog) -> None:
    step = "SELECT k, window_end FROM TUMBLE(r, ts, '1 s')"
    text = f"WITH RECURSIVE r(k, ts) AS (SELECT k, ts FROM s UNION {step}) SELECT * FROM r"
    with pytest.raises(QueryError, match="recursion being defined"):
        plan_of(text, catalog)


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("[ROWS 5]", (WindowKind.ROWS, 5, None, (), None)),
        ("[PARTITION BY k ROWS 5]", (WindowKind.ROWS, 5, None, (0,), None)),
        (
            "[PARTITION BY k ROWS 5 RANGE 1 HOUR]",
            (WindowKind.ROWS, 5, None, (0,), 3600 * SECOND),
        ),
        ("[RANGE 10 s]", (WindowKind.RANGE, 10 * SECOND, None, (), None)),
        ("[RANGE 10 s SLIDE 2 s]", (WindowKind.RANGE, 10 * SECOND, 2 * SECOND, (), None)),
        ("[NOW]", (WindowKind.NOW, None, None, (), None)),
        ("[UNBOUNDED]", (WindowKind.UNBOUNDED, None, None, (), None)),
    ],
)
def test_windows_behind_streams(written: str, window: tuple[object, ...], catalog: Catalog) -> None:
    found = window_of(f"SELECT * FROM s {written}", catalog)
    assert isinstance(found, Window)
    assert (found.kind, found.size, found.slide, found.partition, found.range) == window
