"""Bases: the rows below an operator, as data, so that offers of a rule are found and not tried.

A rule states the basis of an offer, and those of a plan that is wanted. It may only answer if one
of these lies on that: with the same label, over the same inputs on each side, under predicates
that imply the offered ones. That much is looked up; the rule itself decides the rest.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from federated_optimizer.sharing.block_shapes import placed
from federated_optimizer.sharing.forms.alignment import aligned
from federated_optimizer.sharing.forms.block_names import equal_pair, pinned
from federated_optimizer.sharing.forms.blocks import Block
from federated_optimizer.sharing.forms.canonical_plan import input_forms
from federated_optimizer.sharing.forms.known_times import known_times
from federated_optimizer.sharing.forms.residuals import predicate_set
from streamsql.algebra.expressions import Expression, columns_of, map_columns, shifted


@dataclass(frozen=True)
class Basis:
    """The rows that an operator works on.

    Attributes:
        label: Says, of an offer, which plans it may answer, and of what is wanted, by which offers.
        sides: Blocks whose inputs and equalities correspond, each to the block in its place.
        predicates: Over the columns of all sides, one behind the other; TRUE of the rows.
    """

    label: Hashable
    sides: tuple[Block, ...]
    predicates: tuple[Expression, ...]

    @classmethod
    def of_block(cls, label: Hashable, block: Block) -> "Basis":
        """Return the basis of an operator over one block."""
        return cls(label, (block,), block.predicates)

    @cached_property
    def family(self) -> Hashable:
        """Equal for bases that may lie on each other if their predicates agree."""
        return self.label, tuple(tuple(sorted(input_forms(side))) for side in self.sides)

    @cached_property
    def _bare(self) -> tuple[Block, ...]:
        """The sides under their equalities, with the columns that predicates read."""
        return tuple(
            Block(side.inputs, _equalities(side), shown, ("",) * len(shown))
            for side, shown in zip(self.sides, self._read, strict=True)
        )

    @cached_property
    def _read(self) -> tuple[tuple[Expression, ...], ...]:
        """The columns that predicates read, by side."""
        read = frozenset[int]().union(*map(columns_of, self.predicates))
        return tuple(
            tuple(c for at, c in enumerate(side.columns) if at + start in read)
            for side, start in zip(self.sides, self._starts, strict=True)
        )

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        starts = [0]
        for side in self.sides:
            starts.append(starts[-1] + side.offsets[-1])
        return tuple(starts[:-1])

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        """The numbers of the columns that predicates read."""
        read = frozenset[int]().union(*map(columns_of, self.predicates))
        return tuple(sorted(read))

    def in_canonical_order(self) -> tuple[Hashable, "Basis"]:
        """Return the name of a shape, and the basis in the numbers of columns that it has."""
        found = [placed(side) for side in self._bare]
        blocks = tuple(each.block for each in found)
        return tuple(each.shape for each in found), self._over(blocks)

    def over(self, other: "Basis") -> Iterator["Basis"]:
        """Yield the basis over the inputs of another one of its family, in each assignment."""
        ours = (
            replace(bare, predicates=_settled(side))
            for bare, side in zip(self._bare, self.sides, strict=True)
        )
        sides = (aligned(own, side) for own, side in zip(ours, other.sides, strict=True))
        for moved in product(*sides):
            yield self._over(moved)

    def _over(self, moved: tuple[Block, ...]) -> "Basis":
        """Return the basis with other inputs, which show the columns that predicates read."""
        put: list[Expression] = []
        start = 0
        for block in moved:
            put += (shifted(e, start) for e in block.outputs)
            start += block.offsets[-1]
        columns = dict(zip(self._numbers, put, strict=True))
        predicates = tuple(map_columns(p, lambda c: columns[c.position]) for p in self.predicates)
        sides = tuple(replace(block, outputs=(), names=()) for block in moved)
        return Basis(self.label, sides, predicates)

    @property
    def condition(self) -> PredicateSet:
        """The predicates, and what is known of all rows of the sides."""
        known = (
            shifted(p, start)
            for side, start in zip(self.sides, self._starts, strict=True)
            for p in known_times(side)
        )
        return predicate_set(self.predicates, tuple(known))


def _settled(block: Block) -> tuple[Expression, ...]:
    """Return the predicates by which columns equal each other, or a constant."""
    return tuple(p for p in block.predicates if equal_pair(p) is not None or pinned(p) is not None)


def _equalities(block: Block) -> tuple[Expression, ...]:
    return tuple(p for p in block.predicates if equal_pair(p) is not None)
