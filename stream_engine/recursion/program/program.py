"""A fixpoint as a program: rules over leaves that are cut to what the rules read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from stream_engine.recursion.program.item_tables import values_at
from stream_engine.recursion.program.rules import LeafUse, Rule, narrowed, rules_of
from streamsql.algebra.operators import AggregateSelection, Best, Fixpoint, Plan
from streamsql.data.types import Row
from streamsql.errors import RecursionInterruptedError, RecursionLimitError

_FREE_CYCLE = (
    "on a cycle of cost 0, rows of equal cost repeat for ever while another column, such "
    "as a path, grows: exclude cost 0 (WHERE cost > 0) or remove that column"
)


def never() -> bool:
    """Return False: nothing interrupts."""
    return False


@dataclass(frozen=True, slots=True)
class Program:
    """What an engine needs to know of a recursion.

    Attributes:
        leaves: Plans whose rows the rules read.
        rules: Base and step rules over the narrowed leaves.
        selection: With it, only the best rows per group are in the view and recur.
        limit: Most rows of the view.
        interrupted: Whether its query is to stop at once, in the middle of a change too.
    """

    name: str
    width: int
    leaves: tuple[Plan, ...]
    uses: tuple[LeafUse, ...]
    rules: tuple[Rule, ...]
    selection: AggregateSelection | None
    limit: int
    interrupted: Callable[[], bool] = never

    @property
    def is_linear(self) -> bool:
        """Whether no rule reads the relation more than once."""
        return all(rule.is_linear for rule in self.rules)

    @property
    def group(self) -> tuple[int, ...] | None:
        """The group columns of the aggregate selection; None without one."""
        return None if self.selection is None else self.selection.group

    @property
    def _carries_more(self) -> bool:
        """Whether best rows have columns besides the group and what is best, such as a path."""
        if self.selection is None:
            return False
        chosen = {*self.selection.group, *(best.value for best in self.selection.bests)}
        return len(chosen) < self.width

    def check_size(self, rows: int, candidates: int = 0) -> None:
        """Stop a view that has grown too large, or that nobody wants any more.

        Engines call it at least once a round.

        Args:
            rows: Of the view.
            candidates: Rows kept besides, such as those that aggregate selection holds back.

        Raises:
            RecursionLimitError: There are more than `limit` rows, or twice as many candidates.
        """
        self.check_wanted()
        if rows > self.limit or candidates > 2 * self.limit + 1_000:
            what = self.limit if rows > self.limit else f"{2 * self.limit} candidate"
            raise RecursionLimitError(
                f"recursion {self.name} has more than {what} rows",
                hint=(f"{_FREE_CYCLE}; else " if self._carries_more else "")
                + "bound it (hops < 12) or raise it: WITH RECURSIVE (LIMIT n)",
            )

    def check_wanted(self) -> None:
        """Stop the work for a query that nobody wants any more.

        Raises:
            RecursionInterruptedError: It was interrupted.
        """
        if self.interrupted():
            raise RecursionInterruptedError(f"recursion {self.name} was stopped during a step")

    def check_derivations(self, done: int, most: int) -> None:
        """Stop the work for one change when it is more than `most` derivations."""
        self.check_wanted()
        if done > most:
            raise RecursionLimitError(
                f"recursion {self.name} needs more than {most} derivations for one change",
                hint="bound it (hops < 12), or join it with fewer rows",
            )

    def check_rounds(self, rounds: int, groups: int) -> None:
        """Notice cycles that improve for ever: a best row needs every group at most once.

        Raises:
            RecursionLimitError: There were more rounds than groups, with some to spare.
        """
        if self.selection is not None and rounds > groups + 1_000:
            raise RecursionLimitError(
                f"recursion {self.name} still changes after {rounds} rounds",
                hint=f"check for a cycle of negative cost {_FREE_CYCLE}"
                if self._carries_more
                else "check for a cycle of negative cost",
            )


def program_of(node: Fixpoint, *, interrupted: Callable[[], bool] = never) -> Program:
    """Return the program of a fixpoint.

    Raises:
        UnsupportedError: A branch is not monotone.
    """
    rule_set = rules_of(node)
    uses, rules = narrowed(rule_set)
    return Program(
        node.name,
        len(node.schema),
        rule_set.leaves,
        uses,
        rules,
        node.selection,
        node.limit,
        interrupted,
    )


def best_rows(selection: AggregateSelection, rows: Iterable[Row]) -> set[Row]:
    """Return the rows that are best of their group for one of the aggregates, all ties.

    A row whose value is NULL is not best for that aggregate.
    """
    rows = list(rows)
    return set().union(*(_front(selection.group, best, rows) for best in selection.bests))


def _front(group: tuple[int, ...], best: Best, rows: list[Row]) -> set[Row]:
    key_of, at, minimum = values_at(group), best.value, best.minimum
    values: dict[Any, Any] = {}
    for row in rows:
        value: Any = row[at]
        if value is not None:
            key = key_of(row)
            known = values.get(key)
            if known is None or (value < known if minimum else value > known):
                values[key] = value
    return {row for row in rows if row[at] is not None and values[key_of(row)] == row[at]}
