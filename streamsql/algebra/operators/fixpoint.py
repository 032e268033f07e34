"""Recursion."""

import msgspec

from streamsql.algebra.choices import (
    AggregateSelection,
    Copies,
    OnMoreRounds,
    RecursionChoice,
    RoundLimit,
)
from streamsql.algebra.leaves import require
from streamsql.algebra.operators import plan
from streamsql.data.schema import Schema


class Fixpoint(msgspec.Struct, frozen=True, tag="fixpoint"):
    """The least relation containing the base branches and closed under the step branches.

    Set semantics, unless `copies` says otherwise: then it is the sum over all chains of derivations
    (the base rows, the steps of these, the steps of those …), each step reads the relation once,
    and something bounds the length of every chain. A step branch reads `RecursiveReference(name)`
    at least once; more than once makes the recursion non-linear. Mutually recursive relations are
    one relation whose first column distinguishes them.

    Attributes:
        limit: Most rows the relation may have before the query is stopped with an error.
        selection: With it, the relation is only its best rows per group, ties kept.
        choice: How it is to be maintained.
        rounds: With it, the last column is the round of a row; a row past the bound stops the
            query where that is asked for.
        copies: Whether a row that is derived twice is there twice.
    """

    name: str
    columns: Schema
    base: tuple["plan.Plan", ...]
    step: tuple["plan.Plan", ...]
    limit: int = 1_000_000
    selection: AggregateSelection | None = None
    choice: RecursionChoice = RecursionChoice()
    rounds: RoundLimit | None = None
    copies: Copies = Copies.ONE

    def __post_init__(self) -> None:
        types = self.columns.dtypes
        require(bool(self.base), "recursion without base branch")
        for branch in self.base + self.step:
            require(branch.schema.dtypes == types, "recursive branch types differ")

    @property
    def most_rounds(self) -> int | None:
        """The round past which a row stops the query; None where none does."""
        if self.rounds is None or self.rounds.on_more != OnMoreRounds.ERROR:
            return None
        return self.rounds.rounds

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.columns

    @property
    def inputs(self) -> tuple["plan.Plan", ...]:
        """Base branches, then step branches."""
        return self.base + self.step
