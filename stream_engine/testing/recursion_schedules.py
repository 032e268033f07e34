"""Random schedules for recursions over several sites, and the answer from scratch, for tests."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import (
    TEXT,
    bridged,
    cheapest_path,
    doubling,
    doubling_cheapest,
    odd_and_even,
    project,
    reachable,
    region,
    two_ways,
)
from streamsql.algebra.expressions import Call, Column
from streamsql.algebra.operators import (
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    RecursiveReference,
    Scan,
    SourceKind,
)
from streamsql.data.delta import difference
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.reference import Database, evaluate
from streamsql.wire.bundles.partitioning import site_of

BaseRow = tuple[str, Row]
"""Name of a base relation and one of its rows."""

PARENT = Scan("parent", SourceKind.TABLE, Schema.of(("child", TEXT), ("parent", TEXT)))

LINKS: tuple[BaseRow, ...] = tuple(
    ("link", (a, b, cost)) for a in "abcde" for b in "abcde" if a != b for cost in (1, 3)
)
SENSORS: tuple[BaseRow, ...] = (
    *[("sensor", (i, float(i % 4), float(i // 4))) for i in range(8)],
    *[("triggered", (i,)) for i in range(8)],
    *[("seed", row) for row in ((0, 0), (1, 7), (1, 3))],
)
FAMILY: tuple[BaseRow, ...] = tuple(
    ("parent", (child, parent)) for child in "abcdef" for parent in "abcdef" if child != parent
)


def same_generation() -> Fixpoint:
    """Return pairs of the same generation (digest Q17); the step joins two leaf rows."""
    schema = Schema.of(("x", TEXT), ("y", TEXT))
    reference = RecursiveReference("same_generation", schema)
    siblings = Join(PARENT, PARENT, JoinKind.INNER, ((1, 1),))
    different = Call("<>", (Column(0, "", TEXT), Column(2, "", TEXT)), DataType.BOOLEAN)
    base = project(Filter(siblings, different), x=Column(0, "x", TEXT), y=Column(2, "y", TEXT))
    above = Join(PARENT, reference, JoinKind.INNER, ((1, 0),))
    both = Join(above, PARENT, JoinKind.INNER, ((3, 1),))
    step = project(both, x=Column(0, "x", TEXT), y=Column(4, "y", TEXT))
    return Fixpoint("same_generation", schema, (base,), (step,))


def database(rows: Mapping[str, set[Row]]) -> Database:
    """Return a database in which relations have these rows."""
    result = Database()
    for name, relation in rows.items():
        result.append(name, [SourceEvent(row, ts=0) for row in sorted(relation, key=repr)])
    return result


@dataclass(frozen=True, slots=True)
class Schedule:
    """What happens, at random.

    Attributes:
        pool: Base rows that come and go; each has one site.
        changes: How many of them.
        busy: Most deliveries and settlements between two changes.
        deletes: Whether rows go, too.
    """

    pool: Sequence[BaseRow]
    changes: int = 30
    busy: int = 6
    deletes: bool = True


def run_schedule(
    node: Fixpoint,
    sites: tuple[str, ...],
    options: RecursionOptions,
    schedule: Schedule,
    seed: int,
) -> tuple[Ensemble, set[Row]]:
    """Change base rows while messages are under way; return the sites and their expected rows."""
    choice = random.Random(seed)  # noqa: S311  (an adversary, no secret)
    ensemble = Ensemble(node, sites, options, seed=seed)
    leaves = ensemble.operators[sites[0]].leaves
    live: dict[str, set[Row]] = {name: set() for name, _ in schedule.pool}
    for _ in range(schedule.changes):
        name, row = choice.choice(schedule.pool)
        before = database(live)
        if schedule.deletes:
            live[name] ^= {row}
        else:
            live[name] |= {row}
        after = database(live)
        for port, leaf in enumerate(leaves):
            change = difference(evaluate(leaf, after, 0), evaluate(leaf, before, 0))
            for changed, weight in change.items():
                ensemble.apply(site_of(changed[:1], sites), port, {changed: weight})
        for site in sites:
            if choice.random() < 0.7:
                ensemble.step(site)
        for _ in range(choice.randrange(schedule.busy)):
            ensemble.act()
    for site in sites:
        ensemble.step(site)
    ensemble.run()
    return ensemble, set(evaluate(node, database(live), 0))


EXAMPLES: list[tuple[Fixpoint, Sequence[BaseRow]]] = [
    (reachable(), LINKS),
    (cheapest_path(), LINKS),
    (cheapest_path(via=True), LINKS),
    (two_ways(), LINKS),
    (region(1.5), SENSORS),
    (same_generation(), FAMILY),
    (doubling(), LINKS),
    (doubling_cheapest(), LINKS),
    (bridged(), LINKS),
    (odd_and_even(), LINKS),
]
"""A view of every shape, with the base rows to change it by."""
