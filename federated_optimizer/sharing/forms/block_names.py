"""Names of the columns and predicates of a block, the same in whatever order its inputs stand.

Inputs are told apart by what they compute, then by the predicates about them and their neighbours;
of those that are still alike every order is tried, and the one with the least text is taken.
Columns that an equality makes equal have one name. DOUBLE is left out: 0 and -0 are equal and yet
different.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import permutations, product
from math import factorial, prod

from federated_optimizer.canonical.canonical_expressions import canonical_form
from federated_optimizer.sharing.forms.blocks import Block
from federated_optimizer.sharing.forms.expression_text import text_of
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
)
from streamsql.data.types import DataType

MAX_ORDERS = 120
"""Orders of inputs that are alike; of more the given order is taken."""


def equal_pair(predicate: Expression) -> tuple[int, int] | None:
    """Return the columns that are the same value where a predicate is TRUE."""
    match predicate:
        case Call(function="=", arguments=(Column() as a, Column() as b)):
            return (a.position, b.position) if a.dtype == b.dtype != DataType.DOUBLE else None
        case _:
            return None


def pinned(predicate: Expression) -> tuple[Column, Literal] | None:
    """Return a column and the constant that it equals where a predicate is TRUE."""
    match predicate:
        case Call("=", (Column() as column, Literal() as value)) | Call(
            "=", (Literal() as value, Column() as column)
        ) if column.dtype == value.dtype:
            return column, value
        case _:
            return None


def equal_classes(predicates: Sequence[Expression]) -> dict[int, tuple[int, ...]]:
    """Return, by column, all columns that predicates make equal, in order, if there are others."""
    found: dict[int, set[int]] = {}
    for predicate in predicates:
        pair = equal_pair(predicate)
        if pair is None:
            continue
        united = found.get(pair[0], {pair[0]}) | found.get(pair[1], {pair[1]})
        found.update(dict.fromkeys(united, united))
    return {column: tuple(sorted(members)) for column, members in found.items()}


class BlockNames:
    """The names of one block.

    Attributes:
        forms: Of the inputs, in the order that was found.
        order: The numbers of the inputs in that order.
        predicates: In order.
    """

    def __init__(
        self, block: Block, forms: Sequence[str], columns: Sequence[tuple[str, ...]]
    ) -> None:
        self._names = [name for each in columns for name in each]
        self._owners = block.owners
        self._classes = equal_classes(block.predicates)
        others = (p for p in block.predicates if equal_pair(p) is None)
        self._others = [part for p in others for part in conjuncts(canonical_form(p))]
        best: tuple[list[str], tuple[int, ...]] | None = None
        for order in self._orders(list(forms)):
            texts = self._texts(order)
            if best is None or texts < best[0]:
                best = texts, order
        assert best is not None  # noqa: S101  (there is an order)
        self.predicates, order = best
        self.order = order
        self.forms = [forms[i] for i in order]
        self._label = self._labels(order)

    def texts(self, expressions: Sequence[Expression]) -> tuple[str, ...]:
        """Return the names of expressions over the columns of the inputs."""
        return tuple(text_of(each, self._label) for each in expressions)

    @cached_property
    def _owners_of_others(self) -> list[set[int]]:
        """The inputs that each predicate reads but for equalities."""
        return [{self._owners[c] for c in columns_of(each)} for each in self._others]

    @cached_property
    def _own_names(self) -> dict[tuple[int, int], str]:
        """The least name that an input has for a column that it, or an equal one, is."""
        found: dict[tuple[int, int], str] = {}
        for column in frozenset().union(*map(columns_of, self._others)):
            for each in self._classes.get(column, (column,)):
                place, name = (column, self._owners[each]), f"self.{self._names[each]}"
                found[place] = min(name, found.get(place, name))
        return found

    def _labels(self, order: Sequence[int]) -> Callable[[int], str]:
        """Return what gives a name for each universal column, one for all that are equal."""
        place = {number: at for at, number in enumerate(order)}
        known: dict[int, str] = {}

        def label(column: int) -> str:
            found = known.get(column)
            if found is None:
                same = self._classes.get(column, (column,))
                found = min(f"{place[self._owners[c]]}.{self._names[c]}" for c in same)
                known[column] = found
            return found

        return label

    def _texts(self, order: Sequence[int]) -> list[str]:
        label = self._labels(order)
        place = {number: at for at, number in enumerate(order)}
        equal = [
            "=".join(sorted({f"{place[self._owners[c]]}.{self._names[c]}" for c in members}))
            for members in set(self._classes.values())
        ]
        return sorted({*equal, *(text_of(p, label) for p in self._others)})

    def _orders(self, colors: list[str]) -> Iterator[tuple[int, ...]]:
        """Yield the orders of the inputs that may be the canonical one."""
        count = len(colors)
        for _ in range(count):
            if len(set(colors)) == count:
                break
            finer = self._refined(colors)
            if len(set(finer)) == len(set(colors)):
                colors = finer
                break
            colors = finer
        alike: dict[str, list[int]] = {}
        for number in range(count):
            alike.setdefault(colors[number], []).append(number)
        groups = [alike[color] for color in sorted(alike)]
        if prod(factorial(len(group)) for group in groups) > MAX_ORDERS:
            yield tuple(i for group in groups for i in group)
            return
        for chosen in product(*(permutations(group) for group in groups)):
            yield tuple(i for group in chosen for i in group)

    def _refined(self, colors: list[str]) -> list[str]:
        """Return colors that also tell what is said of an input, and of what colors of others."""
        labels = [f"{colors[o]}.{n}" for o, n in zip(self._owners, self._names, strict=True)]
        merged: dict[int, str] = {}
        said: list[list[str]] = [[] for _ in colors]
        for members in set(self._classes.values()):
            together = "=".join(sorted(labels[each] for each in members))
            merged.update(dict.fromkeys(members, together))
            for owner in {self._owners[c] for c in members}:
                own = sorted(self._names[c] for c in members if self._owners[c] == owner)
                rest = sorted(labels[c] for c in members if self._owners[c] != owner)
                said[owner].append(f"{own}={rest}")
        for predicate, owners in zip(self._others, self._owners_of_others, strict=True):
            for owner in owners:

                def label(column: int, owner: int = owner) -> str:
                    own = self._own_names.get((column, owner))
                    return merged.get(column) or labels[column] if own is None else own

                said[owner].append(text_of(predicate, label))
        return [
            sha256(f"{color}{sorted(texts)}".encode()).hexdigest()[:32]
            for color, texts in zip(colors, said, strict=True)
        ]
