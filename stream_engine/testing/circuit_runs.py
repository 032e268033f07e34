"""A circuit without a site around it, and the reference answer to compare it with."""

from collections.abc import Iterable, Mapping

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.rows.operator import RecursiveOperator
from stream_engine.recursion.strategies import recursive_operator
from stream_engine.state.source_relation import SourceRelation
from streamsql.algebra.operators import (
    Fixpoint,
    Plan,
)
from streamsql.data.delta import Delta, accumulate, expand
from streamsql.data.events import SourceEvent
from streamsql.reference.evaluate import evaluate
from streamsql.reference.reference_database import Database


def alone(node: Fixpoint) -> RecursiveOperator:
    """Return the operator of a recursion that one site computes alone."""
    return recursive_operator(node, site="here", sites=("here",), epoch=1)


class LocalRun:
    """A circuit over its sources, without a site around it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.circuit: Circuit = compile_plan(plan, alone)
        self.database = Database()
        self.output: Delta = {}
        self._relations = {scan: SourceRelation(scan) for scan in self.circuit.scans}

    def step(self, now: int, events: Iterable[tuple[str, SourceEvent]] = ()) -> Delta:
        """Step with events; return the integrated output."""
        by_source: dict[str, list[SourceEvent]] = {}
        for source, event in events:
            by_source.setdefault(source, []).append(event)
        for source, happened in by_source.items():
            self.database.append(source, happened)
        changes = {
            scan: relation.apply(by_source.get(scan.source, ()), now)
            for scan, relation in self._relations.items()
        }
        accumulate(self.output, self.circuit.step(changes, {}, now))
        return self.output

    def next_wakeup(self) -> int | None:
        """Return when time alone changes something."""
        times = [relation.next_expiry() for relation in self._relations.values()]
        times.append(self.circuit.next_wakeup())
        return min((time for time in times if time is not None), default=None)

    def expected(self, now: int) -> Delta:
        """Return the reference answer over everything that happened."""
        return evaluate(self.plan, self.database, now)


class RemoteRun:
    """A circuit over `RemoteSource` leaves, with its inputs and output added up."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.circuit: Circuit = compile_plan(plan, alone)
        self.inputs: dict[str, Delta] = {name: {} for name in self.circuit.remotes}
        self.output: Delta = self.circuit.step({}, {}, 0)

    def step(self, **changes: Delta) -> Delta:
        """Step with the changes of the inputs; return that of the output.

        Raises:
            AssertionError: It holds a weight of 0, or an input was altered.
        """
        for name, change in changes.items():
            accumulate(self.inputs.setdefault(name, {}), change)
        copies = {name: dict(change) for name, change in changes.items()}
        changed = self.circuit.step({}, changes, 0)
        if changes != copies:
            raise AssertionError(f"the circuit has altered its inputs {copies}")
        if 0 in changed.values():
            raise AssertionError(f"a change of nothing: {changed}")
        accumulate(self.output, changed)
        return changed

    def state(self) -> int:
        """Return how many rows all operators remember."""
        return sum(entry.state_rows for entry in self.circuit.statistics())

    def expected(self) -> Delta:
        """Return the reference answer over the inputs."""
        return evaluated_over(self.plan, self.inputs)


def accumulated(sequence: Iterable[Delta]) -> Delta:
    """Return the sum of deltas."""
    total: Delta = {}
    for delta in sequence:
        accumulate(total, delta)
    return total


def evaluated_over(plan: Plan, remote: Mapping[str, Delta], now: int = 0) -> Delta:
    """Return the reference answer of a plan over `RemoteSource` leaves only."""
    bags = {name: list(expand(relation)) for name, relation in remote.items()}
    return evaluate(plan, Database(), now, bags)
