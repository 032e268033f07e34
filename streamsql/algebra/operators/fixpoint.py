"""Recursion."""

import msgspec

from streamsql.algebra.choices import AggregateSelection, RecursionChoice
from streamsql.algebra.leaves import require
from streamsql.algebra.operators import plan
from streamsql.data.schema import Schema


class Fixpoint(msgspec.Struct, frozen=True, tag="fixpoint"):
    """The least relation containing the base branches and closed under the step branches.

    Set semantics. Each step branch reads `RecursiveReference(name)` at least once; more than once
    makes the recursion non-linear. Mutually recursive relations are one relation whose first
    column tells them apart.

    Attributes:
        limit: Most rows the relation may have before the query is stopped with an error.
        selection: With it, the relation is only its best rows per group, ties kept.
        choice: How it is to be maintained.
    """

    name: str
    columns: Schema
    base: tuple["plan.Plan", ...]
    step: tuple["plan.Plan", ...]
    limit: int = 1_000_000
    selection: AggregateSelection | None = None
    choice: RecursionChoice = RecursionChoice()

    def __post_init__(self) -> None:
        """Refuse branches of other types."""
        types = self.columns.dtypes
        require(bool(self.base), "recursion without base branch")
        for branch in self.base + self.step:
            require(branch.schema.dtypes == types, "recursive branch types differ")

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.columns

    @property
    def inputs(self) -> tuple["plan.Plan", ...]:
        """Base branches, then step branches."""
        return self.base + self.step
