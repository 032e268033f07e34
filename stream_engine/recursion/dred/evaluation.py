"""Run rules over plain rows: set semantics, no annotations."""

from collections.abc import Callable, Iterable, Sequence

from stream_engine.recursion.options import FixpointCounters, RecursionOptions
from stream_engine.recursion.probing import Annotated, ProbePlan, run_all
from stream_engine.recursion.program import Program
from stream_engine.recursion.rule_plans import RulePlans
from stream_engine.recursion.tables import ItemTable
from streamsql.data.types import Row

Tables = Callable[[int], ItemTable]
"""From leaf number, or RECURSIVE, to rows."""

_CHUNK = 1_000


class Evaluation:
    """The rules of a program, with its bounds.

    Attributes:
        plans: Of the rules.
    """

    def __init__(
        self, program: Program, options: RecursionOptions, counters: FixpointCounters
    ) -> None:
        self.plans = RulePlans(program.rules, len(program.uses))
        self._program = program
        self._most = options.max_derivations
        self._counters = counters
        self._spent = 0

    def begin(self) -> None:
        """Begin the work for another change."""
        self._spent = 0

    def heads(self, plans: Sequence[ProbePlan], rows: Sequence[Row], tables: Tables) -> list[Row]:
        """Return what follows from rows in one step; a row may occur several times.

        Args:
            plans: That start from such rows.
            rows: Where to start.
            tables: What else the plans join.

        Raises:
            RecursionLimitError: The work for this change has grown past its bound.
        """
        found: list[Row] = []
        for at in range(0, len(rows), _CHUNK) if plans else ():
            start: list[Annotated] = [(row, True) for row in rows[at : at + _CHUNK]]
            derived = run_all(plans, start, tables, _both)
            self._spend(len(derived))
            found.extend([row for row, _ in derived])
        return found

    def derives(self, row: Row, arrived: Tables, joined: Tables) -> bool:
        """Whether some rule derives a row, from leaf rows that arrived or from joined rows."""
        return self._derives(self.plans.base_heads, row, arrived) or self._derives(
            self.plans.step_heads, row, joined
        )

    def _derives(self, plans: Iterable[ProbePlan], row: Row, tables: Tables) -> bool:
        for plan in plans:
            found = plan.run([(row, True)], tables, _both)
            self._spend(len(found))
            if any(head == row for head, _ in found):
                return True
        return False

    def _spend(self, derivations: int) -> None:
        self._counters.derivations += derivations
        self._spent += derivations
        self._program.check_derivations(self._spent, self._most)


def _both(_left: object, _right: object) -> bool:
    return True
