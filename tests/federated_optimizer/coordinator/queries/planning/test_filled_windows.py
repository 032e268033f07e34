"""EXPLAIN says with how much of the past windows begin."""

from federated_optimizer import Topology
from federated_optimizer import plan as place
from federated_optimizer.coordinator.queries.planning.filled_windows import (
    fill_notes,
    filled_sources,
)
from streamsql.algebra.operators import Plan, Scan, SourceKind
from streamsql.binder import bind_query
from streamsql.syntax import Query, parse_statement
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import catalog_of

DAY = 86_400_000_000


def placed(text: str) -> FragmentBundle:
    catalog = catalog_of(
        "CREATE SOURCE noise (room TEXT, level INTEGER);"
        "CREATE SOURCE heat (device TEXT, level INTEGER, KEY (device))"
    )
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    topology = Topology({"gw-1": frozenset({"noise", "heat"})}, bases=("base",))
    return place(bind_query(statement, catalog), topology, query="q", text=text)


def test_the_interval_of_the_window_is_what_is_asked() -> None:
    bundle = placed("SELECT room FROM noise [RANGE 7 DAYS]")
    asked: list[Plan] = []

    def sizes(plan: Plan) -> tuple[str]:
        asked.append(plan)
        return ("reads 12 files",)

    (note,) = [
        note
        for fragment in bundle.fragments
        for note in fill_notes(fragment.plan, ("noise",), 10 * DAY, sizes)
    ]
    assert note == (
        "windows over noise begin with what the lake has of the last 168 h; it reads 12 files"
    )
    (scan,) = asked
    assert isinstance(scan, Scan)
    assert scan.kind == SourceKind.TABLE
    assert str(scan.history) == (
        "BETWEEN TIMESTAMP '1970-01-04T00:00:00Z' AND TIMESTAMP '1970-01-11T00:00:00Z'"
    )


def test_what_is_not_filled_has_no_note() -> None:
    assert filled_sources(placed("SELECT device FROM heat [RANGE 7 DAYS]")) == ()
    bundle = placed("SELECT room FROM noise [RANGE 7 DAYS]")
    assert filled_sources(bundle) == ("noise",)
    assert list(fill_notes(bundle.fragments[0].plan, (), 0, None)) == []
