"""Which recursions are graph problems, and why others are not."""

import pytest

from stream_engine.recursion.kernels.graph_problem import Kind
from stream_engine.recursion.kernels.kernel_engine import recognised
from stream_engine.recursion.kernels.recognition import NotAGraphProblemError, recognise
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.program import program_of
from stream_engine.recursion.strategies import recursive_operator
from streamsql.algebra.choices import Strategy
from streamsql.algebra.operators import Fixpoint, Plan
from streamsql.errors import UnsupportedError
from tests.streamsql.from_text import bound_query, catalog_of

SOURCES = """
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, bandwidth DOUBLE);
CREATE VIEW channel AS SELECT src, dst, bandwidth FROM link;
CREATE TABLE triggered (sensor TEXT, x DOUBLE, y DOUBLE, level INTEGER);
CREATE TABLE sensors (sensor TEXT, x DOUBLE, y DOUBLE, level INTEGER);
CREATE TABLE region_seed (region TEXT, sensor TEXT);
CREATE TABLE parent (child TEXT, ancestor TEXT);
CREATE TABLE free (machine TEXT, room TEXT);
CREATE TABLE visitorposition (tag TEXT, point TEXT);
CREATE TABLE routingpoint (src TEXT, dst TEXT, distance DOUBLE);
CREATE TABLE freemachines (mid TEXT, point TEXT);
CREATE TABLE machinesoftware (mid TEXT, software TEXT);
"""

LIBRARY = {
    "reachable": "reachable",
    "cycles": "reachable",
    "active_region": "reachable",
    "active_region_with_rim": "reachable",
    "contiguous_region": "least label",
    "widest_path": "widest",
    "cheapest_path": "cheapest with all best rows",
    "shortest_path": "hops with all best rows",
    "shortest_paths": "hops with all best rows",
    "nearest_resource": "cheapest with all best rows",
    "shortest_and_cheapest_path": "several aggregates",
    "within_radius": "reads column hops",
    "subtree_height": "reads column depth",
    "tree_imbalance": "reads column depth",
    "resilience": "reads column path",
    "cycle_paths": "reads column path",
    "same_generation": "only the recursive relation joins the other relations of a",
}
"""What the first recursion of a view is, or why it is no graph problem."""

WALK = "WITH RECURSIVE w ({columns}) AS ({base} UNION {step}) {query}"


def fixpoint(text: str) -> Fixpoint:
    catalog = catalog_of(SOURCES, library=True)
    found = first_fixpoint(bound_query(text, catalog).plan)
    assert found is not None
    return found


def first_fixpoint(plan: Plan) -> Fixpoint | None:
    if isinstance(plan, Fixpoint):
        return plan
    below = [first_fixpoint(child) for child in plan.inputs]
    return next((found for found in below if found is not None), None)


def walk(columns: str, base: str, step: str, query: str = "SELECT * FROM w") -> Fixpoint:
    return fixpoint(WALK.format(columns=columns, base=base, step=step, query=query))


def titled(node: Fixpoint) -> str:
    return recognise(program_of(node)).title


@pytest.mark.parametrize("view", LIBRARY)
def test_library_views(view: str) -> None:
    title, reason = recognised(fixpoint(f"SELECT * FROM {view}"))
    assert (title is None) == bool(reason)
    assert LIBRARY[view] in (title or reason)


@pytest.mark.parametrize(
    ("step", "kept", "replaced"),
    [
        ("SELECT l.src, w.dst FROM link l JOIN w ON l.dst = w.src", (1,), (0,)),
        ("SELECT w.src, l.dst FROM w JOIN link l ON l.src = w.dst", (0,), (1,)),
    ],
    ids=["right-linear", "left-linear"],
)
def test_both_ways_of_walking(step: str, kept: tuple[int, ...], replaced: tuple[int, ...]) -> None:
    problem = recognise(program_of(walk("src, dst", "SELECT src, dst FROM link", step)))
    assert (problem.group, problem.node, problem.kind) == (kept, replaced, Kind.REACH)


@pytest.mark.parametrize(
    ("value", "aggregate", "title"),
    [
        ("w.cost + l.cost", "MIN", "cheapest"),
        ("l.cost + w.cost", "MIN", "cheapest"),
        ("w.cost + 1.0", "MIN", "hops"),
        ("w.cost + 2.0", "MIN", "cheapest"),
        ("w.cost - l.cost", "MAX", "dearest"),
        ("LEAST(w.cost, l.bandwidth)", "MAX", "widest"),
        ("GREATEST(l.cost, w.cost)", "MIN", "narrowest"),
        ("w.cost", "MIN", "least label"),
        ("w.cost", "MAX", "greatest label"),
    ],
)
def test_values(value: str, aggregate: str, title: str) -> None:
    node = walk(
        "src, dst, cost",
        "SELECT src, dst, cost FROM link",
        f"SELECT l.src, w.dst, {value} FROM link l JOIN w ON l.dst = w.src",
        f"SELECT src, dst, {aggregate}(cost) FROM w GROUP BY src, dst",
    )
    assert titled(node) == title


def test_the_nearest_target_of_every_room() -> None:
    node = walk(
        "machine, room, cost",
        "SELECT machine, room, 0.0 FROM free",
        "SELECT w.machine, l.src, w.cost + l.cost FROM link l JOIN w ON l.dst = w.room",
        "SELECT room, MIN(cost), ARG_MIN(machine, cost) FROM w GROUP BY room",
    )
    problem = recognise(program_of(node))
    assert problem.title == "nearest"
    assert (problem.group, problem.node, problem.payload) == ((), (1,), (0,))


def test_widest_ways_from_named_sources_are_left_to_other_engines() -> None:
    node = walk(
        "machine, room, cost",
        "SELECT machine, room, 9.0 FROM free",
        "SELECT w.machine, l.src, LEAST(w.cost, l.cost) FROM link l JOIN w ON l.dst = w.room",
        "SELECT room, MAX(cost) FROM w GROUP BY room",
    )
    with pytest.raises(
        NotAGraphProblemError, match="with LEAST or GREATEST, best rows that differ in other"
    ):
        recognise(program_of(node))


def test_several_steps_make_one_graph() -> None:
    node = walk(
        "src, dst",
        "SELECT src, dst FROM link",
        "SELECT l.src, w.dst FROM link l JOIN w ON l.dst = w.src "
        "UNION SELECT l.dst, w.dst FROM link l JOIN w ON l.src = w.src WHERE l.cost > 2",
    )
    assert len(recognise(program_of(node)).edges) == 2


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("SELECT a.src, b.dst FROM w a JOIN w b ON a.dst = b.src", "more than once"),
        ("SELECT dst, src FROM w", "reads no other relation"),
        (
            "SELECT l.src, w.dst FROM link l JOIN w ON l.dst = w.src WHERE l.src <> w.dst",
            "reads column dst",
        ),
        (
            "SELECT w.dst, l.src FROM link l JOIN w ON l.dst = w.src",
            "joined, and computed from the relation",
        ),
        (
            "SELECT l.src, w.dst FROM w JOIN link l ON l.dst = w.src "
            "UNION SELECT w.src, l.src FROM link l JOIN w ON l.dst = w.dst",
            "joined in some rules",
        ),
        (
            "SELECT l.src, w.dst FROM w JOIN link l ON l.dst = w.src JOIN link m ON TRUE",
            "only the recursive relation joins the other relations of a",
        ),
    ],
)
def test_reasons(step: str, reason: str) -> None:
    node = walk("src, dst", "SELECT src, dst FROM link", step)
    with pytest.raises(NotAGraphProblemError, match=reason):
        recognise(program_of(node))


def test_a_kernel_that_is_asked_for_and_does_not_fit_is_refused_with_the_reason() -> None:
    node = fixpoint("SELECT * FROM same_generation")
    options = RecursionOptions(strategy=Strategy.KERNEL)
    with pytest.raises(
        UnsupportedError, match=r"not a graph problem.*only the recursive relation joins"
    ) as caught:
        recursive_operator(node, site="s", sites=("s",), epoch=1, options=options)
    assert "ranked" in caught.value.hint


@pytest.mark.parametrize(
    ("view", "strategy", "description"),
    [
        ("reachable", "auto", "kernel: reachable"),
        ("reachable", "kernel", "kernel: reachable"),
        ("reachable", "ranked", "ranked"),
        ("same_generation", "auto", "ranked"),
    ],
)
def test_the_operator_says_what_it_is(view: str, strategy: str, description: str) -> None:
    node = fixpoint(f"SELECT * FROM {view}")
    options = RecursionOptions(strategy=Strategy(strategy))
    operator = recursive_operator(node, site="s", sites=("s",), epoch=1, options=options)
    assert operator.description.startswith(description)
