"""Conditions that something else may judge in part: what it passes is judged again.

Of several conditions that must all hold, some are enough; of alternatives, each is needed.
"""

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from streamsql.algebra.expressions import Call, Expression

T = TypeVar("T")

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def translated(
    condition: Expression,
    one: Callable[[Expression], T | None],
    every: Callable[[list[T]], T],
    some: Callable[[list[T]], T],
) -> T | None:
    """Return a condition that every row passes which passes this one; None: there is none.

    Args:
        condition: Of our language.
        one: Translates what is neither AND nor OR, or returns None.
        every: Joins by AND; of at least one.
        some: Joins by OR; of at least one.
    """
    match condition:
        case Call(function="AND" | "OR" as name, arguments=parts):
            made = [translated(part, one, every, some) for part in parts]
            found = [part for part in made if part is not None]
            if name == "OR" and len(found) < len(parts):
                return None
            return (every if name == "AND" else some)(found) if found else None
        case _:
            return one(condition)
