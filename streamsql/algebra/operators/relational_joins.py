"""Operators that pair the rows of two inputs."""

import enum

from streamsql.algebra.expressions import Expression
from streamsql.algebra.leaves import require
from streamsql.algebra.operators.relational import Binary, check_columns
from streamsql.data.schema import Schema


class JoinKind(enum.StrEnum):
    """Kinds of joins.

    INNER, LEFT and FULL give pairs of rows; LEFT and FULL also the rows without partner of the left
    side or of both, padded with NULLs. SEMI gives the left rows that have a partner, ANTI those
    that have none, each as often as it is there. A RIGHT join is a LEFT join with exchanged sides.
    """

    INNER = "INNER"
    LEFT = "LEFT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"

    @property
    def is_filter(self) -> bool:
        """Whether it gives left rows only: SEMI and ANTI."""
        return self in (JoinKind.SEMI, JoinKind.ANTI)


class Join(Binary, frozen=True, tag="join"):
    """Pairs of rows that agree on the keys and satisfy the residual predicate; see `JoinKind`.

    NULL keys never match.

    Attributes:
        keys: Pairs (left position, right position); empty for a theta join or product.
        residual: Read over the concatenated row, whatever the kind gives.
    """

    kind: JoinKind
    keys: tuple[tuple[int, int], ...] = ()
    residual: Expression | None = None

    def __post_init__(self) -> None:
        left, right = len(self.left.schema), len(self.right.schema)
        for left_key, right_key in self.keys:
            require(0 <= left_key < left and 0 <= right_key < right, "join key out of range")
        if self.residual is not None:
            check_columns((self.residual,), left + right, "join")

    @property
    def schema(self) -> Schema:
        """Left columns, then right columns; SEMI and ANTI: left columns."""
        left = self.left.schema
        return left if self.kind.is_filter else left + self.right.schema


class AsOfJoin(Binary, frozen=True, tag="as_of_join"):
    """Each left row with the one right row that was current at its time.

    That is the right row of the same keys with the greatest time not after the left row's (before
    it, if strict); of several with that time the greatest row in row order. INNER drops left rows
    without one, LEFT pads them. NULL keys and NULL times never match.

    Attributes:
        kind: INNER or LEFT.
        left_time: Position of the left row's time, of any ordered type.
        right_time: Position of the right row's time, of the same type.
        strict: Whether the right row must be older.
        keys: Pairs (left position, right position).
    """

    kind: JoinKind
    left_time: int
    right_time: int
    strict: bool = False
    keys: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        require(self.kind in (JoinKind.INNER, JoinKind.LEFT), "as-of join kind")
        left, right = len(self.left.schema), len(self.right.schema)
        for left_key, right_key in (*self.keys, (self.left_time, self.right_time)):
            require(0 <= left_key < left and 0 <= right_key < right, "join key out of range")

    @property
    def schema(self) -> Schema:
        """Left columns, then right columns."""
        return self.left.schema + self.right.schema
