"""An operator as parts and a whole."""

from collections.abc import Callable
from dataclasses import dataclass

from streamsql.algebra.operators import Plan


@dataclass(frozen=True, slots=True)
class Parted:
    """An operator that gateways compute a part of.

    Attributes:
        part: Over the rows of one gateway.
        merged: Returns, of the parts of some gateways, a part that stands for all of them.
        whole: Returns, of the parts of all gateways, the operator's rows.
        together: Columns of the part; parts that agree on them are needed at one place.
        in_whole: Where the whole has these columns, one for one.
        words: The method as EXPLAIN names it.
    """

    part: Plan
    merged: Callable[[Plan], Plan]
    whole: Callable[[Plan], Plan]
    together: tuple[int, ...]
    in_whole: tuple[int, ...]
    words: str
