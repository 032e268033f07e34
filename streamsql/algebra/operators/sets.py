"""Operators on relations as sets and as bags."""

import enum

import msgspec

from streamsql.algebra.leaves import require
from streamsql.algebra.operators import plan
from streamsql.algebra.operators.nodes import Binary, Unary
from streamsql.data.schema import Schema


class SetKind(enum.StrEnum):
    """Set operators beside UNION."""

    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


class Distinct(Unary, frozen=True, tag="distinct"):
    """Each row once."""


class SetOperation(Binary, frozen=True, tag="set_operation"):
    """INTERSECT and EXCEPT of inputs of equal types; NULLs are equal.

    With `all` a row is there min(l, r) times, or max(l - r, 0) times; else at most once: when both
    sides have it, or when only the left side has it.
    """

    kind: SetKind
    all: bool = False

    def __post_init__(self) -> None:
        """Refuse sides of different types."""
        require(self.left.schema.dtypes == self.right.schema.dtypes, "set operation types differ")

    @property
    def schema(self) -> Schema:
        """The left side's columns."""
        return self.left.schema


class UnionAll(msgspec.Struct, frozen=True, tag="union_all"):
    """The bag sum of inputs of equal types; UNION is Distinct over it."""

    branches: tuple["plan.Plan", ...]

    def __post_init__(self) -> None:
        """Refuse branches of different types."""
        require(bool(self.branches), "union without branches")
        first = self.branches[0].schema.dtypes
        require(all(b.schema.dtypes == first for b in self.branches), "union types differ")

    @property
    def schema(self) -> Schema:
        """The first branch's columns."""
        return self.branches[0].schema

    @property
    def inputs(self) -> tuple["plan.Plan", ...]:
        """The branches."""
        return self.branches
