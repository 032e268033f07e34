"""Offers of blocks, by their inputs and the equalities between these.

Offers of one shape have the same inputs under the same equalities, so their columns have the same
numbers. What is wanted is brought into these numbers once for all of them, and an index of
predicates finds those that are no stronger.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.canonical.sets.predicate_index import PredicateIndex
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from federated_optimizer.sharing.forms.alignment import Available, aligned
from federated_optimizer.sharing.forms.block_names import equal_pair
from federated_optimizer.sharing.forms.blocks import Block, positions
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan, names_of
from federated_optimizer.sharing.forms.known_times import known_times
from federated_optimizer.sharing.forms.residuals import predicate_set
from federated_optimizer.sharing.node_offers import Offer
from streamsql.algebra.expressions import Column, Expression, map_columns

Key = tuple[str, str, str]
"""Of an offer: its run, its fragment, and the form of what it computes."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offer that is no stronger than a block that is wanted.

    Attributes:
        offer: The offer.
        block: It computes.
        wanted: The block that is wanted, over the inputs of the other one.
        available: What the offer shows.
        key: Of the offer.
        known: Of the offer.
    """

    offer: Offer
    block: Block
    wanted: Block
    available: Available
    known: "_Known"

    def order(self, rows: Callable[[Offer], float]) -> tuple[object, ...]:
        """Return a key: the one to be tried first comes first.

        Of equal ones that which sites deliver: it is there even when its run's own query ends.
        """
        offer, run = self.offer, self.offer.run
        told = -len(self.block.predicates)
        self.known.rows = rows(offer)
        price = (not offer.is_readable, self.known.likely, told, self.known.copies)
        return (*price, not offer.is_delivered, len(run), run, offer.fragment)


PER_COPY = 0.05
"""The part of an offer's rows that one more fragment below it counts as.

A bundle has copies of all that it rests on. Without that a thousand variations of a bound would be
a chain, each a filter over the one before, which leaves out hardly a row.
"""


@dataclass(slots=True)
class _Known:
    """Facts of an offer that decide when it is tried.

    Attributes:
        copies: Number of fragments of other runs that it rests on.
        rows: That it had when it was last asked for; 0: it never was, so that it is tried.
    """

    copies: int
    rows: float = 0.0

    @property
    def likely(self) -> float:
        """Rows, and what stands for the fragments below."""
        return self.rows * (1.0 + PER_COPY * self.copies)


@dataclass(slots=True)
class Shape:
    """Offers of one shape.

    Attributes:
        block: Its inputs under its equalities.
        offers: With their blocks, in the numbers of columns that `block` has.
        predicates: Of the offers.
        roots: Those of them that rest on no other run.
        known: Of the offers.
    """

    block: Block
    offers: dict[Key, tuple[Offer, Block]] = field(default_factory=dict)
    predicates: PredicateIndex[Key] = field(default_factory=PredicateIndex)
    roots: PredicateIndex[Key] = field(default_factory=PredicateIndex)
    available: dict[Key, Available] = field(default_factory=dict)
    met: dict[int, "_Met"] = field(default_factory=dict)
    known: dict[Key, _Known] = field(default_factory=dict)

    def weaker(self, wanted: Block) -> Iterator[Candidate]:
        """Yield offers that are no stronger than a block, which has as many inputs.

        Those come first that can be read, and of these those with the fewest rows when they were
        last asked for: `known` is kept up to date for what is tried.
        """
        met = self.met.get(id(wanted))
        if met is None:
            if len(self.met) >= MAX_MET:
                self.met.clear()
            over = tuple(
                (m, predicate_set(m.predicates, known_times(m)))
                for m in aligned(wanted, self.block)
            )
            met = self.met[id(wanted)] = _Met(wanted, over)
        yielded: list[set[Key]] = [set() for _ in met.moved]
        for most in (NEAR_BOUNDS, MAX_BOUNDS):
            if most not in met.found:
                met.found[most] = [self._found(p, most) for _, p in met.moved]
            for (moved, _), found, before in zip(met.moved, met.found[most], yielded, strict=True):
                for key in sorted(found - before, key=self._likely):
                    offer, block = self.offers[key]
                    yield Candidate(offer, block, moved, self.available[key], self.known[key])
                before.update(found)

    def _found(self, predicates: PredicateSet, most: int) -> set[Key]:
        found = self.predicates.weaker_or_equal(predicates, most)
        # The nearest may all rest on many others: then one that these rest on may be as good.
        if found and min(self.known[key].copies for key in found) > FEW_COPIES:
            found |= self.roots.weaker_or_equal(predicates, NEAR_ROOTS)
        return found

    def _likely(self, key: Key) -> tuple[object, ...]:
        """Return an order of offers that costs nothing, and is the same in each process."""
        run, fragment, form = key
        known = self.known[key]
        return (not fragment, known.likely, known.copies, -len(run), run, fragment, form)

    def changed(self) -> None:
        """Discard the results of look-ups: offers have come or gone."""
        for each in self.met.values():
            each.found = {}


NEAR_BOUNDS = 32
"""Bounds of one term that are looked at first for one block, the nearest: they have fewer rows."""

MAX_BOUNDS = 256
"""Bounds that are looked at where none of the nearest answers."""

FEW_COPIES = 4
"""Fragments of others that are no reason to look for an offer that rests on none."""

NEAR_ROOTS = 8
"""Of offers that rest on no other run, the bounds that are looked at besides."""

MAX_MET = 64
"""Blocks whose assignments to a shape are remembered: registration asks for each several times."""


@dataclass(slots=True)
class _Met:
    """A block that was looked for.

    Attributes:
        wanted: The block; it is kept, so that no other one has its id.
        moved: Over the inputs of the shape in each assignment, with its predicates.
        found: Keys of the offers that are no stronger, by assignment, by the number of bounds that
            were looked at; empty: not looked for yet.
    """

    wanted: Block
    moved: tuple[tuple[Block, PredicateSet], ...]
    found: dict[int, list[set[Key]]] = field(default_factory=dict)


class BlockShapes:
    """Index of blocks by shape."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, ...], dict[tuple[object, ...], Shape]] = {}
        self._places: dict[Key, tuple[tuple[str, ...], tuple[object, ...]]] = {}

    def add(self, key: Key, offer: Offer, block: Block) -> None:
        """Add an offer that computes a block."""
        place = placed(block)
        shape = self._shapes.setdefault(place.forms, {}).get(place.shape)
        if shape is None:
            equal = tuple(p for p in place.block.predicates if equal_pair(p) is not None)
            bare = replace(place.block, predicates=equal, outputs=(), names=())
            shape = self._shapes[place.forms][place.shape] = Shape(bare)
        shape.offers[key] = offer, place.block
        shape.predicates.add(key, place.predicates)
        shape.available[key] = place.available
        bundle = offer.bundle
        copies = len(bundle.fragments) - len(bundle.own) if bundle.feeds else 0
        shape.known[key] = _Known(copies)
        if not copies:
            shape.roots.add(key, place.predicates)
        shape.changed()
        self._places[key] = place.forms, place.shape

    def remove(self, key: Key) -> None:
        """Remove an offer."""
        forms, name = self._places.pop(key)
        shape = self._shapes[forms][name]
        del shape.offers[key], shape.available[key], shape.known[key]
        shape.predicates.remove(key)
        shape.roots.remove(key)
        shape.changed()
        if not shape.offers:
            del self._shapes[forms][name]
        if not self._shapes[forms]:
            del self._shapes[forms]

    def has(self, forms: tuple[str, ...]) -> bool:
        """Return whether there are offers of inputs with these forms, which are sorted."""
        return forms in self._shapes

    def all(self, forms: tuple[str, ...]) -> Iterator[tuple[Offer, Block]]:
        """Yield the offers of inputs with these forms, which are sorted."""
        for shape in self._shapes.get(forms, {}).values():
            yield from shape.offers.values()

    def weaker(
        self, wanted: Block, forms: tuple[str, ...], allowed: Callable[[Offer], bool], most: int
    ) -> Iterator[list[Candidate]]:
        """Yield offers that are no stronger than a block, the likely best in the first list.

        Whoever takes no further list where one answers does work that does not grow with the number
        of queries that run.

        Args:
            wanted: The block.
            forms: Of its inputs, sorted.
            allowed: Whether an offer may be read.
            most: Number of offers of each shape in a list.
        """
        shapes = self._shapes.get(forms, {}).values()
        left = [(c for c in shape.weaker(wanted) if allowed(c.offer)) for shape in shapes]
        while some := [candidate for each in left for candidate in islice(each, most)]:
            yield some


@dataclass(frozen=True, slots=True)
class Placed:
    """The place of a block.

    Attributes:
        block: With its inputs in the order of the shape.
        forms: Of the inputs, sorted.
        shape: The name of its shape.
        predicates: Of the block.
        available: What it shows.
    """

    block: Block
    forms: tuple[str, ...]
    shape: tuple[object, ...]
    predicates: PredicateSet
    available: Available


@exactly_cached(4_096)
def placed(block: Block) -> Placed:
    """Return the place of a block among those of its shape."""
    named = [canonical_plan(child) for child in block.inputs]
    equal = tuple(p for p in block.predicates if equal_pair(p) is not None)
    names = names_of(block.inputs, equal)
    block = reordered(block, names.order)
    shape = (*((named[i].form, named[i].columns) for i in names.order), *names.predicates)
    predicates = predicate_set(block.predicates, known_times(block))
    return Placed(block, tuple(sorted(names.forms)), shape, predicates, Available.of(block))


def in_canonical_order(block: Block) -> Block:
    """Return a block with its inputs in the order that blocks of its shape have here."""
    return placed(block).block


def reordered(block: Block, order: tuple[int, ...]) -> Block:
    """Return a block with its inputs in another order."""
    place = positions(block, order)

    def moved(expression: Expression) -> Expression:
        return map_columns(expression, lambda c: Column(place[c.position], c.name, c.dtype))

    return Block(
        tuple(block.inputs[i] for i in order),
        tuple(map(moved, block.predicates)),
        tuple(map(moved, block.outputs)),
        block.names,
    )
