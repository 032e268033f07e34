"""A recursion that counts copies (UNION ALL): the circuit of its branches, fed with its output.

    rows = base + step(rows)

Operators of the circuit are linear in the relation, and every chain of derivations ends, so that
the equation has one solution: the sum over all chains. A change is fed back until none comes out.
Deletions take the same way with negative weights: no row supports itself, because a chain never
returns to a row (each round has other rows, or a counter).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import come_and_gone
from stream_engine.operators.rows.operator import RecursiveMessage, RoundTrace
from streamsql.algebra.choices import Copies
from streamsql.algebra.operators import (
    Fixpoint,
    Plan,
    RecursiveReference,
    RemoteSource,
    UnionAll,
    is_open,
    with_inputs,
)
from streamsql.data.delta import Delta, accumulate
from streamsql.data.types import Row
from streamsql.errors import InternalError, RecursionLimitError
from streamsql.wire.messages import AnnotatedRow

DESCRIPTION = "copies counted per chain of derivations"
MAX_COPIES = 2**62
"""Max copies of one row: aggregates emit 64 bits."""

_ROWS = "rows"


@dataclass(slots=True)
class CopiesCounters:
    """Work done so far; see `FixpointCounters`. Nothing travels."""

    settles: int = 0
    rounds: int = 0
    derivations: int = 0
    rederived: int = 0
    received_rows: int = 0
    sent_rows: int = 0
    sent_kills: int = 0
    recomputed: int = 0
    trace: RoundTrace = field(default_factory=RoundTrace)


def branches_of(node: Fixpoint) -> tuple[Plan, tuple[Plan, ...]]:
    """Return one plan of all branches over `RemoteSource` leaves, and the plans of the leaves."""
    leaves: dict[Plan, str] = {}

    def over_leaves(plan: Plan) -> Plan:
        if isinstance(plan, RecursiveReference):
            return RemoteSource(_ROWS, plan.schema)
        if is_open(plan):
            return with_inputs(plan, tuple(map(over_leaves, plan.inputs)))
        return RemoteSource(leaves.setdefault(plan, f"leaf {len(leaves)}"), plan.schema)

    whole = UnionAll(tuple(map(over_leaves, node.inputs)))
    return whole, tuple(leaves)


class CopiesOperator:
    """A recursive operator at one place.

    State: that of the joins in the steps, and the weight of every row. Work per change: the rows
    that it derives, round by round.

    Attributes:
        leaves: Plans whose changes are given to `apply`, by port number.
        counters: Work done so far.
    """

    description = DESCRIPTION
    is_settled = True

    def __init__(self, node: Fixpoint, circuit: Circuit, leaves: tuple[Plan, ...]) -> None:
        self.leaves = leaves
        self.counters = CopiesCounters()
        self._name = node.name
        self._limit = node.limit
        self._is_counted = node.copies == Copies.COUNTED
        self._circuit = circuit
        self._pending: dict[str, Delta] = {}
        self._rows: Delta = {}
        self._copies = 0

    def apply(self, port: int, delta: Delta) -> None:
        """Buffer the change of a leaf."""
        accumulate(self._pending.setdefault(f"leaf {port}", {}), delta)

    def settle(self, rounds: int | None = None) -> Delta:  # noqa: ARG002  (all rounds are one change)
        """Feed the change back until none comes out; return that of the relation, with weights.

        Raises:
            RecursionLimitError: There are more rows than the limit, or too many copies of one.
        """
        pending, self._pending = self._pending, {}
        if not pending:
            return {}
        self.counters.settles += 1
        result: Delta = {}
        rounds_before = self.counters.rounds
        delta = self._circuit.step({}, pending, 0)
        while delta:
            self.counters.rounds += 1
            # A chain has a row for each round, but where 1e17 + 1.0 is 1e17 it goes on for ever.
            if self.counters.rounds - rounds_before > self._limit:
                raise self._too_many()
            self.counters.derivations += len(delta)
            come, gone = come_and_gone(delta)
            self.counters.trace.note(come, gone)
            accumulate(result, delta)
            accumulate(self._rows, delta)
            self._copies += sum(delta.values())
            self._check(delta)
            delta = self._circuit.step({}, {_ROWS: delta}, 0)
        return result

    def _check(self, delta: Delta) -> None:
        held = len(self._rows) if self._is_counted else max(len(self._rows), self._copies)
        if held > self._limit:
            raise self._too_many()
        if any(abs(self._rows.get(row, 0)) > MAX_COPIES for row in delta):
            raise RecursionLimitError(
                f"recursion {self._name} has more than {MAX_COPIES} copies of one row",
                hint="reduce the rounds, or filter more of its rows",
            )

    def _too_many(self) -> RecursionLimitError:
        return RecursionLimitError(
            f"recursion {self._name} has more than {self._limit} rows",
            hint="bound it (hops < 12) or raise it: WITH RECURSIVE (LIMIT n)",
        )

    def receive(
        self,
        sender: str,
        port: str,
        annotated: Sequence[AnnotatedRow],  # noqa: ARG002
        kills: Sequence[int],  # noqa: ARG002
    ) -> None:
        """Refuse messages: it is kept at one place."""
        raise InternalError(f"{sender} sends {port} to a recursion that is at one place")

    def drain(self) -> Sequence[RecursiveMessage]:
        """Return nothing: it is at one place."""
        return ()

    def kill_site(self, site: str, epoch: int) -> None:
        """Do nothing: lost rows leave the leaves."""

    def state_rows(self) -> Iterator[Row]:
        """Yield the rows, each once."""
        return iter(self._rows)
