"""Comparison of the computation index in the catalog with the runs that there are."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.network_model import (
    DifferenceKind,
    IndexDifference,
    IndexReport,
)
from federated_optimizer.coordinator.queries.planned_queries import offered_plan
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.stored_computations import (
    PARTS,
    Computed,
    Row,
    computation_row,
    read_rows,
    replace_computations,
    stored_computations,
)
from federated_optimizer.network.run_ages import age_of
from streamsql.errors import DeploymentError

RELATIONS = ("topology", *PARTS)


async def check_computations(
    shared: SharedParts, queries: Queries, *, rebuild: bool = False
) -> IndexReport:
    """Compare the index with the runs.

    The rows of thousands of runs take seconds to make, during which queries come and go. While rows
    are compared none does, and only rows of runs that have changed since are made.

    Args:
        shared: The catalog, and the lock of all changes.
        queries: Those that run.
        rebuild: Whether what differs is written as it ought to be, in one transaction.

    Raises:
        DeploymentError: The catalog cannot be read or written, or queries are moving to other runs
            just now, so that nobody can say what is right.
    """
    shared.presence.check_in_charge()
    _check_rest(queries, rebuild=rebuild)
    before = dict(_stored_runs(queries.runs))
    made = await asyncio.to_thread(_rows_of, before)
    async with shared.changing():
        moving = _check_rest(queries, rebuild=rebuild)
        runs = dict(_stored_runs(queries.runs))
        same = {run for run, computed in runs.items() if _is_same(computed, before.get(run))}
        rows = {run: made[run] for run in same}
        changed = {run: computed for run, computed in runs.items() if run not in same}
        return await asyncio.to_thread(_compare, shared, rows, changed, moving, rebuild)


def _is_same(computed: Computed, before: Computed | None) -> bool:
    return before is not None and all(
        one is other for one, other in zip(computed, before, strict=True)
    )


def _check_rest(queries: Queries, *, rebuild: bool) -> int:
    """Return how many runs are on trial; none may be if the index is to be rebuilt.

    Raises:
        DeploymentError: Some are.
    """
    moving = len(queries.runs.tried())
    if rebuild and moving:
        raise DeploymentError(
            f"{moving} runs are on trial, and queries may be about to move to them",
            hint="rebuild the index in some minutes",
        )
    return moving


def _rows_of(runs: Mapping[str, Computed]) -> dict[str, Row]:
    return {run: computation_row(bundle, logical) for run, (bundle, logical) in runs.items()}


def _stored_runs(runs: SharedRuns) -> Iterator[tuple[str, Computed]]:
    """Yield the runs of which the catalog has a reader."""
    for run in runs.all():
        readers = [
            query
            for query in runs.readers(run)
            if query.origin != Origin.SESSION and not runs.is_tried(query)
        ]
        if readers and readers[0].bundle.version:  # version 0: it could not be read
            plans = (plan for plan in map(offered_plan, readers) if plan is not None)
            logical = next(plans, None)
            yield run, (readers[0].bundle, logical)


def _compare(
    shared: SharedParts,
    made: Mapping[str, Row],
    changed: Mapping[str, Computed],
    moving: int,
    rebuild: bool,
) -> IndexReport:
    wanted = {**made, **_rows_of(changed)}
    with shared.store.writing() as connection:  # what waits to be stored is stored first
        stored = stored_computations(connection)
        found = tuple(differences(stored, wanted))
        if rebuild and found:
            for run, row in wanted.items():
                if row[PARTS[0]] is None:  # what nobody knows stays as it is
                    row.update({part: stored.get(run, row)[part] for part in PARTS})
            replace_computations(connection, wanted, dict.fromkeys(each.run for each in found))
    return IndexReport(len(wanted), found, moving, rebuilt=rebuild and bool(found))


def differences(stored: Mapping[str, Row], wanted: Mapping[str, Row]) -> Iterator[IndexDifference]:
    """Yield the differences of the rows that are stored from those that ought to be, by run."""
    for run in sorted({*stored, *wanted}, key=age_of):
        if run not in wanted:
            yield IndexDifference(run, "run", DifferenceKind.SURPLUS, "no stored query reads it")
        elif run not in stored:
            yield IndexDifference(run, "run", DifferenceKind.MISSING, "queries read it")
        else:
            yield from _of_run(run, stored[run], wanted[run])


def _of_run(run: str, stored: Row, wanted: Row) -> Iterator[IndexDifference]:
    if stored["version"] != wanted["version"]:
        words = f"it is {stored['version']} in the index, and {wanted['version']} runs"
        yield IndexDifference(run, "version", DifferenceKind.DIFFERENT, words)
    for relation in RELATIONS:
        if wanted[relation] is not None and stored[relation] != wanted[relation]:
            yield from _of_relation(run, relation, stored[relation], wanted[relation])


def _of_relation(
    run: str, relation: str, stored: str | int | None, wanted: str | int | None
) -> Iterator[IndexDifference]:
    right = read_rows(wanted)
    if stored is None:
        yield IndexDifference(run, relation, DifferenceKind.MISSING, "all rows")
        return
    there = read_rows(stored)
    if there is None or right is None or sorted(there) == sorted(right):
        yield IndexDifference(run, relation, DifferenceKind.DIFFERENT, "it is written otherwise")
        return
    lacking, more = _but(right, there), _but(there, right)
    # The name of a literal is its key; of other relations a row has nothing but its key.
    both = {row[0] for row in lacking} & {row[0] for row in more}
    for name in sorted(both) if relation == PARTS[0] else ():
        yield IndexDifference(run, relation, DifferenceKind.DIFFERENT, name)
        lacking = [row for row in lacking if row[0] != name]
        more = [row for row in more if row[0] != name]
    for kind, rows in ((DifferenceKind.MISSING, lacking), (DifferenceKind.SURPLUS, more)):
        for row in rows:
            yield IndexDifference(run, relation, kind, " | ".join(row[:3]))


def _but(rows: Iterable[list[str]], others: list[list[str]]) -> list[list[str]]:
    known = {tuple(row) for row in others}
    return [row for row in rows if tuple(row) not in known]
