"""Run rules over plain rows: set semantics, no annotations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from stream_engine.recursion.program.fixpoint_options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program.item_tables import ItemTable
from stream_engine.recursion.program.placement import Placement
from stream_engine.recursion.program.probing import Annotated, ProbePlan, RulePlans, run_all
from stream_engine.recursion.program.program import Program
from streamsql.data.types import Row


@dataclass(slots=True)
class DredCounters(FixpointCounters):
    """Work done since the start; `rederived` counts over-deleted rows that came back.

    Attributes:
        over_deleted: Rows taken out because one of their derivations had gone.
        waves: Deletion waves this site took part in.
        generations: How often all sites began again from their leaf rows.
        sent_control: Of `sent_rows`, those that only coordinate.
    """

    over_deleted: int = 0
    waves: int = 0
    generations: int = 0
    sent_control: int = 0


Tables = Callable[[int], ItemTable]
"""From the number of a leaf or copy, or RECURSIVE, to rows."""

_CHUNK = 1_000


class Evaluation:
    """The rules of a program, with its bounds.

    Args:
        options: `max_derivations` counts here.
        placement: Where its rules are evaluated by several sites.
    """

    def __init__(
        self,
        program: Program,
        options: RecursionOptions,
        counters: FixpointCounters,
        placement: Placement | None = None,
    ) -> None:
        if placement is None:
            self.plans = RulePlans(program.rules, len(program.uses))
        else:
            tables = len(program.uses) + len(placement.copies)
            self.plans = RulePlans(placement.rules, tables)
        self._program = program
        self._most = options.max_derivations
        self._counters = counters
        self._spent = 0

    def begin(self) -> None:
        """Begin the work for another change."""
        self._spent = 0

    def heads(self, plans: Sequence[ProbePlan], rows: Sequence[Row], tables: Tables) -> list[Row]:
        """Return what follows from rows in one step; a row may occur several times.

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

    def derivable(self, rows: Iterable[Row], arrived: Tables, joined: Tables) -> set[Row]:
        """Return those of some rows that a rule derives from what is there."""
        wanted = list(rows)
        found: set[Row] = set()
        for plans, tables in ((self.plans.base_heads, arrived), (self.plans.step_heads, joined)):
            for plan in plans:
                for at in range(0, len(wanted), _CHUNK):
                    # The annotation of a derivation is the row it was looked for.
                    start: list[Annotated] = [(row, row) for row in wanted[at : at + _CHUNK]]
                    derived = plan.run(start, tables, _first)
                    self._spend(len(derived))
                    found.update([row for head, row in derived if head == row])
                wanted = [row for row in wanted if row not in found]
        return found

    def _spend(self, derivations: int) -> None:
        self._counters.derivations += derivations
        self._spent += derivations
        self._program.check_derivations(self._spent, self._most)


def _first(left: Row, _right: object) -> Row:
    return left


def _both(_left: object, _right: object) -> bool:
    return True
