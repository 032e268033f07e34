"""Every kernel after every change against the reference evaluator; changes sum up to the view."""

import importlib.util
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.recursion.kernels.kernel_engine import kernel_engine
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.leaf_relations import LeafInput
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.program import Program, program_of
from streamsql.algebra.choices import Compiled
from streamsql.algebra.operators import Fixpoint, Plan, Scan
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta, accumulate, difference
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

SOURCES = """
CREATE TABLE link (src TEXT, dst TEXT, cost DOUBLE, width DOUBLE, n INTEGER);
CREATE TABLE triggered (sensor TEXT, x DOUBLE, y DOUBLE, level INTEGER);
CREATE TABLE sensors (sensor TEXT, x DOUBLE, y DOUBLE, level INTEGER);
CREATE TABLE region_seed (region TEXT, sensor TEXT);
CREATE TABLE free (machine TEXT, room TEXT, penalty DOUBLE);
"""

FORTH = "FROM link l JOIN w ON l.dst = w.src"
BACK = "FROM link l JOIN w ON l.src = w.dst"
BEST = "WITH RECURSIVE w (src, dst, v) AS ({}) SELECT src, dst, {}(v) FROM w GROUP BY src, dst"
TO_ROOM = "FROM link l JOIN w ON l.dst = w.room"

VIEWS = {
    "reachable": "SELECT * FROM reachable",
    "reachable, left-linear": f"""WITH RECURSIVE w (src, dst) AS (
        SELECT src, dst FROM link UNION SELECT w.src, l.dst {BACK}) SELECT * FROM w""",
    "cheapest, floats": BEST.format(
        f"SELECT src, dst, cost FROM link UNION SELECT l.src, w.dst, l.cost + w.v {FORTH}", "MIN"
    ),
    "cheapest, left-linear": BEST.format(
        f"SELECT src, dst, n FROM link UNION SELECT w.src, l.dst, w.v + l.n {BACK}", "MIN"
    ),
    "dearest": BEST.format(
        f"SELECT src, dst, 9 - n FROM link UNION SELECT l.src, w.dst, w.v - l.n {FORTH}", "MAX"
    ),
    "hops": BEST.format(
        f"SELECT src, dst, 1 FROM link UNION SELECT l.src, w.dst, w.v + 1 {FORTH}", "MIN"
    ),
    "two kinds of steps": BEST.format(
        f"""SELECT src, dst, n FROM link UNION SELECT l.src, w.dst, l.n + w.v {FORTH}
        UNION SELECT l.dst, w.dst, w.v FROM link l JOIN w ON l.src = w.src WHERE l.n > 1""",
        "MIN",
    ),
    "widest": BEST.format(
        f"""SELECT src, dst, width FROM link
        UNION SELECT l.src, w.dst, LEAST(l.width, w.v) {FORTH}""",
        "MAX",
    ),
    "narrowest": BEST.format(
        f"""SELECT src, dst, n FROM link
        UNION SELECT l.src, w.dst, GREATEST(w.v, l.n) {FORTH}""",
        "MIN",
    ),
    "nearest": f"""WITH RECURSIVE w (room, v) AS (
        SELECT room, 0.0 FROM free UNION SELECT l.src, l.cost + w.v {TO_ROOM})
        SELECT room, MIN(v) FROM w GROUP BY room""",
    "nearest, named": f"""WITH RECURSIVE w (machine, room, v) AS (
        SELECT machine, room, penalty FROM free
        UNION SELECT w.machine, l.src, l.n + w.v {TO_ROOM})
        SELECT room, MIN(v), ARG_MIN(machine, v) FROM w GROUP BY room""",
    "nearest by hops, named": f"""WITH RECURSIVE w (machine, room, v) AS (
        SELECT machine, room, 0 FROM free UNION SELECT w.machine, l.src, w.v + 1 {TO_ROOM})
        SELECT room, MIN(v), ARG_MIN(machine, v) FROM w GROUP BY room""",
    "nearest in whole numbers, named": f"""WITH RECURSIVE w (machine, room, v) AS (
        SELECT machine, room, CAST(2 * penalty AS INTEGER) FROM free
        UNION SELECT w.machine, l.src, l.n + 1 + w.v {TO_ROOM})
        SELECT room, MIN(v), ARG_MIN(machine, v) FROM w GROUP BY room""",
    "dearest in whole numbers, named": f"""WITH RECURSIVE w (machine, room, v) AS (
        SELECT machine, room, CAST(2 * penalty AS INTEGER) FROM free
        UNION SELECT w.machine, l.src, w.v - (l.n + 1) {TO_ROOM})
        SELECT room, MAX(v), ARG_MAX(machine, v) FROM w GROUP BY room""",
    "nearest by weights that may be zero, named": f"""WITH RECURSIVE w (machine, room, v) AS (
        SELECT machine, room, 0 FROM free UNION SELECT w.machine, l.src, l.n + w.v {TO_ROOM})
        SELECT room, MIN(v), ARG_MIN(machine, v) FROM w GROUP BY room""",
    "least label, named": f"""WITH RECURSIVE w (machine, room, v) AS (
        SELECT machine, room, penalty FROM free UNION SELECT w.machine, l.src, w.v {TO_ROOM})
        SELECT room, MIN(v), ARG_MIN(machine, v) FROM w GROUP BY room""",
    "two columns": """WITH RECURSIVE w (src, dst, n) AS (
        SELECT src, dst, n FROM link
        UNION SELECT l.src, w.dst, m.n FROM w JOIN link l ON l.dst = w.src AND l.n = w.n
        JOIN link m ON m.src = l.src AND m.n >= l.n) SELECT * FROM w""",
    "region": "SELECT * FROM active_region",
    "region with rim": "SELECT * FROM active_region_with_rim",
    "contiguous region": "SELECT * FROM contiguous_region",
    "shortest path": "SELECT * FROM shortest_path",
    "cheapest path": f"""WITH RECURSIVE w (src, dst, v, path) AS (
        SELECT src, dst, n + 1, src || '.' || dst FROM link
        UNION SELECT l.src, w.dst, l.n + 1 + w.v, l.src || '.' || w.path {FORTH})
        SELECT src, dst, MIN(v), ARG_MIN(path, v) FROM w GROUP BY src, dst""",
}

NODES = st.sampled_from("abcd")
PLACES = st.sampled_from([0.0, 12.0, 20.0, 31.9, -20.0])
SENSORS = st.tuples(st.sampled_from("stuvwx"), PLACES, PLACES, st.sampled_from([0, 0, 1, None]))
ROWS = {
    "link": st.tuples(
        st.one_of(NODES, NODES, NODES, st.none()),
        NODES,
        st.sampled_from([0.0, 0.1, 0.2, 0.3, 1e-20, 1e16, None]),
        st.sampled_from([1.0, 2.0, 3.0, None]),
        st.sampled_from([0, 0, 1, 2, None]),
    ),
    "triggered": SENSORS,
    "sensors": SENSORS,
    "region_seed": st.tuples(st.sampled_from("RS"), st.sampled_from("stuvwx")),
    "free": st.tuples(st.sampled_from("MNO"), NODES, st.sampled_from([0.0, 0.5, 1.0])),
}
WAYS = {
    "repairs": RecursionOptions(compiled=Compiled.NO),
    "searches again": RecursionOptions(compiled=Compiled.NO, elastic=0.0),
    "compiled": RecursionOptions(compiled=Compiled.YES),
}
COMPILED = {
    view
    for view in VIEWS
    if not any(word in view for word in ("named", "path", "widest", "narrowest", "contiguous"))
}
if importlib.util.find_spec("numba") is None:
    del WAYS["compiled"]
BOTH = [(view, way) for view in VIEWS for way in WAYS if way != "compiled" or view in COMPILED]


def test_compiled_kernels_are_tested_here() -> None:
    pytest.importorskip("numba", reason="compiled kernels need numba: requirements/compiled.txt")
    assert len(COMPILED) > len(VIEWS) / 3
    assert ("reachable", "compiled") in BOTH


Toggle = tuple[str, Row]


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    return catalog_of(SOURCES, library=True)


@lru_cache(maxsize=len(VIEWS))
def fixpoint(view: str) -> Fixpoint:
    return first_fixpoint(bound_query(VIEWS[view], catalog()).plan)


def first_fixpoint(plan: Plan) -> Fixpoint:
    while not isinstance(plan, Fixpoint):
        plan = plan.inputs[0]
    return plan


def sources(plan: Plan) -> list[str]:
    below = {name for child in plan.inputs for name in sources(child)}
    return sorted(below | ({plan.source} if isinstance(plan, Scan) else set()))


class Run:
    """An engine whose base relations are toggled, and what it has said."""

    def __init__(self, node: Fixpoint, engine: LocalEngine, program: Program) -> None:
        self.node = node
        self.names = sources(node)
        self.engine = engine
        self.program = program
        self.inputs = [LeafInput(use) for use in program.uses]
        self.leaves: list[Delta] = [{} for _ in program.leaves]
        self.base: dict[str, set[Row]] = {}
        self.view: Delta = {}

    def database(self) -> Database:
        database = Database()
        for name, rows in self.base.items():
            database.append(name, [SourceEvent(row, ts=0) for row in rows])
        return database

    def toggle(self, batch: Iterable[Toggle]) -> None:
        """Insert absent rows and delete present ones, as one change; check everything.

        Rows of relations that the view does not read are passed over.
        """
        for name, row in batch:
            if name not in self.names:
                continue
            self.base.setdefault(name, set()).symmetric_difference_update({row})
        database = self.database()
        for port, plan in enumerate(self.program.leaves):
            new = evaluate(plan, database, 0)
            self.inputs[port].buffer(difference(new, self.leaves[port]))
            self.leaves[port] = new
        taken = [source.take() for source in self.inputs]
        delta = self.engine.change([come for come, _ in taken], [gone for _, gone in taken])
        assert all(weight == (-1 if row in self.view else 1) for row, weight in delta.items())
        accumulate(self.view, delta)
        assert self.view == evaluate(self.node, database, 0)
        assert sorted(self.engine.rows(), key=repr) == sorted(self.view, key=repr)
        assert self.engine.size() == len(self.view)


def run_of(view: str, options: RecursionOptions) -> Run:
    node = fixpoint(view)
    program = program_of(node)
    return Run(node, kernel_engine(program, options), program)


@pytest.mark.parametrize(("view", "way"), BOTH)
@settings(max_examples=max(settings().max_examples // 3, 1))
@given(data=st.data())
def test_after_every_change_the_view_is_the_least_fixpoint(
    view: str, way: str, data: st.DataObject
) -> None:
    run = run_of(view, WAYS[way])
    toggles = st.one_of([st.tuples(st.just(name), ROWS[name]) for name in sources(fixpoint(view))])
    for batch in data.draw(st.lists(st.lists(toggles, min_size=1, max_size=6), max_size=10)):
        run.toggle(batch)
    how = "compiled" if way == "compiled" else "python"
    assert run.engine.description.startswith("kernel: ")
    assert run.engine.description.endswith(f"({how})")


@pytest.mark.parametrize(
    ("view", "way"),
    [
        (view, way)
        for view, way in BOTH
        if view in ("reachable", "nearest", "least label, named", "nearest, named")
    ],
)
def test_many_nodes_are_repaired_and_searched_again_alike(view: str, way: str) -> None:
    """A chain with shortcuts that breaks near its beginning: most of it is lost, part returns."""
    names = [f"n{i}" for i in range(50)]
    links: list[Row] = [(b, a, 1.0, 2.0, 1) for a, b in pairwise(names)]
    links += [(names[i + 9], names[i], 11.0, 1.0, 2) for i in range(0, 40, 7)]
    run = run_of(view, WAYS[way])
    run.toggle([("link", row) for row in links] + [("free", ("M", "n0", 0.0))])
    for cut in (1, 0, 49):
        run.toggle([("link", links[cut])])
    run.toggle([("link", links[0]), ("link", links[1]), ("link", links[40])])


@pytest.mark.parametrize(("view", "way"), [pair for pair in BOTH if "path" not in pair[0]])
def test_nodes_of_a_cycle_do_not_hold_up_each_other(view: str, way: str) -> None:
    """Steps round a cycle cost nothing; one after the other, what feeds it goes."""
    cycle: list[Row] = [("b", "c", 0.0, 3.0, 0), ("c", "b", 0.0, 3.0, 0), ("d", "b", 0.0, 3.0, 0)]
    feeds: list[Row] = [("b", "a", 0.1, 2.0, 1), ("c", "a", 0.2, 2.0, 2), ("b", "b", 0.0, 3.0, 0)]
    run = run_of(view, WAYS[way])
    run.toggle([("link", row) for row in cycle + feeds] + [("free", ("M", "a", 0.0))])
    for row in (*feeds, cycle[2], *reversed(feeds), *cycle):
        run.toggle([("link", row)])
    run.toggle([("link", feeds[2]), ("free", ("M", "a", 0.0))])


def test_places_too_far_apart_for_a_grid_are_left_to_another_engine() -> None:
    run = run_of("region", RecursionOptions())
    near: list[Toggle] = [("triggered", (name, 10.0, y, 0)) for name, y in [("s", 0.0), ("t", 9.0)]]
    run.toggle([("region_seed", ("R", "s")), *near])
    run.toggle([("triggered", ("u", 1e13, 0.0, 0)), ("triggered", ("v", 10.0, 20.0, 0))])
    assert "too far away" in run.engine.description
    run.toggle([("triggered", ("t", 10.0, 9.0, 0))])
    assert len(run.view) == 1


def test_kinds_that_are_not_compiled_say_so() -> None:
    run = run_of("widest", WAYS.get("compiled", RecursionOptions()))
    assert ("not compiled" in run.engine.description) == ("compiled" in WAYS)
