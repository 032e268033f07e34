"""Rows of `sys_decisions` about plans that were looked at."""

from collections.abc import Callable, Iterator, Sequence

from federated_optimizer.coordinator.adaptation.filled_runs import when_alike
from federated_optimizer.coordinator.adaptation.move_gains import work_saved
from federated_optimizer.coordinator.adaptation.over_others import plan_read
from federated_optimizer.coordinator.adaptation.reconsidered import Reconsidered
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.plan_decisions import Decision, Outcome
from streamsql.data.durations import duration_text
from streamsql.wire.fragments import FragmentBundle

FIRST_LOOK = "the first look at the plan since it was deployed"


class DecisionRows:
    """Makes rows about queries of one run.

    Args:
        rate: Returns the bytes a second that the sites of a query's run send; None: not known.
    """

    def __init__(
        self,
        shared: SharedParts,
        planner: Planner,
        rate: Callable[[RunningQuery], float | None],
    ) -> None:
        self._shared = shared
        self._planner = planner
        self._rate = rate

    def compared(
        self, queries: Sequence[RunningQuery], reason: str, found: Reconsidered, why: str
    ) -> Decision:
        """Return a row about two plans; `why` says why queries keep theirs, empty: they move."""
        before = found.after if found.before is None else found.before
        return self._row(
            queries,
            reason,
            why or begun(found, when_alike(found.planned.bundle).microseconds),
            outcome=Outcome.KEPT if why else Outcome.MOVING,
            before=(before.words, before.cost.bytes),
            after=(found.after.words, found.after.cost.bytes),
        )

    def staying(
        self, queries: Sequence[RunningQuery], reason: str, found: Reconsidered
    ) -> Iterator[Decision]:
        """Yield rows about the queries of a run that stay where the others move away, and why."""
        left: dict[str, list[RunningQuery]] = {}
        for query in queries:
            why = found.fixed.get(query.id) or found.apart.get(query.id)
            if why:
                left.setdefault(why, []).append(query)
        for why, stay in left.items():
            yield self.compared(stay, reason, found, why)

    def leaving(self, queries: Sequence[RunningQuery], planned: Planned, reason: str) -> Decision:
        """Return a row about queries that leave a node together with others."""
        detail = "the other plan is being filled, and so are those of the others"
        plans = (queries[0].bundle, planned.bundle)
        before, after = ((plan_read(plan), self._sent(plan)) for plan in plans)
        return self._row(
            queries, reason, detail, outcome=Outcome.MOVING, before=before, after=after
        )

    def _sent(self, bundle: FragmentBundle) -> float:
        return sum(each.cost.bytes for each in self._planner.estimates(bundle).values())

    def same(
        self, queries: Sequence[RunningQuery], reason: str, outcome: Outcome, detail: str
    ) -> Decision:
        """Return a row about a plan that is compared with no other."""
        bundle = queries[0].bundle
        plan = (f"plan {bundle.alternative}", self._sent(bundle))
        return self._row(queries, reason, detail, outcome=outcome, before=plan, after=plan)

    def _row(  # noqa: PLR0913 - what a row says
        self,
        queries: Sequence[RunningQuery],
        reason: str,
        detail: str,
        *,
        outcome: Outcome,
        before: tuple[str, float],
        after: tuple[str, float],
    ) -> Decision:
        return Decision(
            id=self._shared.decisions.next_id(),
            ts=self._shared.clock(),
            queries=", ".join(query.id for query in queries),
            run=queries[0].run,
            reason=reason or FIRST_LOOK,
            outcome=outcome,
            detail=detail,
            plan_before=before[0],
            plan_after=after[0],
            bytes_before=before[1],
            bytes_after=after[1],
            measured_before=self._rate(queries[0]),
        )


def begun(found: Reconsidered, windows: int = 0) -> str:
    """Return what is said of a move that begins; `windows` is how long they take to be filled."""
    said = "the other plan is being filled"
    if found.work is not None:
        return f"{said}; {work_saved(found.work)}"
    if windows:
        said += f", which takes {duration_text(windows)} because of its windows"
    if found.weighing.value(found.filling):
        return said
    return f"{said}; that has no price by {found.weighing.metric}: costing at most half suffices"
