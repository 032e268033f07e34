"""Supports and probabilities against all worlds: every subset of the base rows, evaluated anew."""

from collections.abc import Iterator, Mapping
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.explanation.faithfulness import faithfulness_of
from stream_engine.explanation.what_if import what_if_deleted
from stream_engine.explanation.why import why
from stream_engine.testing.histories import rows
from stream_engine.testing.plans import plans
from stream_engine.testing.recursion_programs import (
    LINK,
    SEED,
    SENSOR,
    TRIGGERED,
    cheapest_path,
    reachable,
    region,
    two_ways,
)
from streamsql.algebra.operators import Plan, RemoteSource, transform_up
from streamsql.algebra.row_explanations import (
    BaseRow,
    Contents,
    Leaf,
    Why,
    leaves_of,
    scan_of,
)
from streamsql.data.delta import Delta, difference, expand, sort_key
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate

World = frozenset[tuple[str, Row]]


def answer(plan: Plan, contents: Contents) -> Delta:
    """Return what a plan holds over leaves with given rows, by the reference."""
    names = {leaf: f"leaf-{number}" for number, leaf in enumerate(contents)}

    def named(node: Plan) -> Plan:
        if node in names:
            return RemoteSource(names[node], node.schema)
        return node

    # Windows stand on scans: they are named first, so that their scans are not.
    windows = {leaf for leaf in contents if leaf.inputs}

    def replaced(node: Plan) -> Plan:
        return named(node) if node in windows else node

    bare = transform_up(plan, replaced)
    remote = {names[leaf]: list(rows) for leaf, rows in contents.items()}
    return evaluate(transform_up(bare, named), Database(), 0, remote)


def base_rows(contents: Contents) -> World:
    return frozenset((scan_of(leaf).source, row) for leaf, held in contents.items() for row in held)


def within(contents: Contents, world: World) -> Contents:
    return {
        leaf: [row for row in held if (scan_of(leaf).source, row) in world]
        for leaf, held in contents.items()
    }


def subsets(world: World) -> Iterator[World]:
    ordered = sorted(world, key=lambda base: (base[0], sort_key(base[1])))
    sizes = (combinations(ordered, size) for size in range(len(ordered) + 1))
    return map(frozenset, chain.from_iterable(sizes))


def worlds_with(plan: Plan, contents: Contents, row: Row) -> dict[World, bool]:
    return {
        world: row in answer(plan, within(contents, world))
        for world in subsets(base_rows(contents))
    }


def lasting(worlds: Mapping[World, bool]) -> set[World]:
    """Return the minimal sets of base rows with which a row holds whatever else goes."""
    enough = {
        world for world in worlds if all(holds for other, holds in worlds.items() if world <= other)
    }
    return {world for world in enough if not any(other < world for other in enough)}


def probability(worlds: Mapping[World, bool], chances: Mapping[tuple[str, Row], float]) -> float:
    total = 0.0
    for world, holds in worlds.items():
        weight = 1.0
        for base, chance in chances.items():
            weight *= chance if base in world else 1.0 - chance
        total += weight if holds else 0.0
    return total


def shown(answered: Why) -> set[World]:
    return {frozenset((base.source, base.row) for base in s) for s in answered.supports}


def chances_of(contents: Contents) -> dict[tuple[str, Row], float]:
    steps = (0.9, 0.5, 1.0, 0.0, 0.25, 0.75)
    ordered = sorted(base_rows(contents), key=lambda base: (base[0], sort_key(base[1])))
    return {base: steps[number % len(steps)] for number, base in enumerate(ordered)}


def check(plan: Plan, contents: Contents, row: Row) -> None:
    chances = chances_of(contents)

    def chance(base: BaseRow) -> float:
        return chances[base.source, base.row]

    found = why(plan, contents, row, limit=1_000, chance=chance)
    assert found.holds
    assert found.complete
    worlds = worlds_with(plan, contents, row)
    trust = faithfulness_of(plan)
    if trust.disturbed:
        assert found.confidence is None
        return
    assert found.confidence is not None
    actual = probability(worlds, chances)
    if trust.loose:
        for support in shown(found):
            assert all(holds for world, holds in worlds.items() if support <= world)
        assert found.confidence.probability <= actual + 1e-9
    else:
        assert shown(found) == lasting(worlds)
        assert found.confidence.exact
        assert found.confidence.probability == pytest.approx(actual, abs=1e-9)


NODES = st.sampled_from("abcd")
LINKS = st.lists(st.tuples(NODES, NODES, st.integers(0, 3)), max_size=7, unique=True)


@pytest.mark.parametrize(
    "plan", [reachable(), cheapest_path(), cheapest_path(via=True), two_ways()], ids=str
)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_recursions(plan: Plan, data: st.DataObject) -> None:
    links = data.draw(LINKS)
    view = answer(plan, {LINK: links})
    if view:
        row = data.draw(st.sampled_from(sorted(view, key=sort_key)))
        check(plan, {LINK: links}, row)


@settings(max_examples=settings().max_examples // 3)
@given(
    st.lists(st.tuples(st.integers(0, 3)), max_size=4, unique=True),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), max_size=3, unique=True),
    st.data(),
)
def test_regions(triggered: list[Row], seeds: list[Row], data: st.DataObject) -> None:
    sensors: list[Row] = [(0, 0.0, 0.0), (1, 1.0, 0.0), (2, 0.0, 1.0), (3, 2.0, 0.0)]
    plan = region(1.5)
    contents: dict[Leaf, list[Row]] = {
        LINK: [],
        SENSOR: sensors[: data.draw(st.integers(2, 4))],
        TRIGGERED: triggered,
        SEED: seeds,
    }
    contents = {leaf: contents[leaf] for leaf in leaves_of(plan)}
    view = answer(plan, contents)
    if view and len(base_rows(contents)) <= 8:
        check(plan, contents, data.draw(st.sampled_from(sorted(view, key=sort_key))))


@st.composite
def filled(draw: st.DrawFn) -> tuple[Plan, Contents]:
    """Return a plan without recursion and few rows for its sources."""
    plan = draw(plans())
    by_source: dict[str, list[Row]] = {}
    contents: dict[Leaf, list[Row]] = {}
    left = 7
    for leaf in leaves_of(plan):
        scan = scan_of(leaf)
        if scan.source not in by_source:
            held = draw(st.lists(rows(scan.columns), max_size=min(left, 4)))
            by_source[scan.source] = held
            left -= len(set(held))
        whole = by_source[scan.source]
        contents[leaf] = [row for row in whole if not leaf.inputs or draw(st.booleans())]
    return plan, contents


@settings(max_examples=settings().max_examples * 8)
@given(filled(), st.data())
def test_plans_without_recursion(case: tuple[Plan, Contents], data: st.DataObject) -> None:
    plan, contents = case
    result = answer(plan, contents)
    if result:
        check(plan, contents, data.draw(st.sampled_from(sorted(result, key=sort_key))))


@settings(max_examples=settings().max_examples * 2)
@given(filled(), st.data())
def test_what_if_is_the_difference(case: tuple[Plan, Contents], data: st.DataObject) -> None:
    plan, contents = case
    held = sorted(base_rows(contents), key=repr)
    gone = data.draw(st.sets(st.sampled_from(held))) if held else set()
    compare_deletion(plan, contents, frozenset(gone))


@settings(max_examples=settings().max_examples // 2)
@given(LINKS, st.data())
def test_what_if_of_recursions(links: list[Row], data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from([reachable(), cheapest_path(via=True)]))
    gone = data.draw(st.sets(st.sampled_from(links))) if links else set()
    compare_deletion(plan, {LINK: links}, frozenset(("link", row) for row in gone))


def compare_deletion(plan: Plan, contents: Contents, gone: World) -> None:
    found = what_if_deleted(plan, contents, within(contents, gone))
    before = answer(plan, contents)
    after = answer(plan, within(contents, base_rows(contents) - gone))
    change = difference(after, before)
    come = {row: weight for row, weight in change.items() if weight > 0}
    lost = {row: -weight for row, weight in change.items() if weight < 0}
    assert found.rows == sum(before.values())
    assert found.come == tuple(sorted(expand(come), key=sort_key))
    assert found.gone == tuple(sorted(expand(lost), key=sort_key))
    assert {(base.source, base.row) for base in found.deleted} == gone & base_rows(contents)
