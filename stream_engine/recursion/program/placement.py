"""Where the rows of a recursion live when several sites compute it together.

The recursive relation is partitioned by hash of some of its columns, the *home* of a row. Every
step rule is evaluated where one of its recursive atoms, the *pivot*, is at home. The other atoms
must be found there: rows of a leaf travel to the partition of the column that an equality ties to
the pivot's home columns, or to every site where there is none (theta joins, further leaves). The
rows of a second recursive atom are at home there too, or else *copies* of the view's rows travel in
the same way.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from stream_engine.recursion.program.rules import RECURSIVE, Rule
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.data.types import Row
from streamsql.wire.bundles.partitioning import site_of

OwnerFunction = Callable[[Row, tuple[str, ...]], str]
_CACHED_OWNERS = 65_536

_COPY_TO_ALL, _COPY, _LEAF_TO_ALL, _CONSTANT = 1_000, 100, 10, 1
"""What a placement costs, roughly: views are larger than leaves, and all sites are many. A column
that is the same in every row of a rule divides nothing."""


@dataclass(frozen=True, slots=True)
class LeafRoute:
    """How the rows of a leaf or copies of the view travel: by these columns, or to all (None)."""

    columns: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Partitioning columns of the recursive relation, and routes of everything that joins it.

    Attributes:
        columns: Home of the recursive relation.
        rules: The rules as sites evaluate them together: atom `number of leaves + i` is copy i.
    """

    columns: tuple[int, ...]
    routes: tuple[tuple[LeafRoute, ...], ...]
    copies: tuple[LeafRoute, ...] = ()
    rules: tuple[Rule, ...] = ()


def is_base(rule: Rule) -> bool:
    """Whether a rule can be evaluated where its only leaf's rows arrive."""
    return rule.atoms != (RECURSIVE,) and len(rule.atoms) == 1


def placement_of(
    rules: tuple[Rule, ...], leaf_count: int, group: tuple[int, ...] | None = None
) -> Placement:
    """Choose the partitioning of a recursion: the cheapest of those some rule asks for.

    Args:
        rules: Of the recursion.
        leaf_count: Number of leaves.
        group: Of the aggregate selection, if there is one: rows that compete share a site.
    """
    candidates = _candidates(rules)
    if group is not None:
        candidates = [c for c in candidates if set(c) <= set(group)] or [()]
    plans = [_Plan(rules, leaf_count, columns) for columns in candidates]
    return min(plans, key=lambda plan: plan.cost).placement()


class _Plan:
    """One choice of home columns, worked out."""

    def __init__(self, rules: tuple[Rule, ...], leaf_count: int, columns: tuple[int, ...]) -> None:
        self.columns = columns
        self.cost = _CONSTANT if _is_constant(rules, columns) else 0
        self._home = LeafRoute(columns)
        self._leaf_count = leaf_count
        self._routes: list[dict[LeafRoute, None]] = [{} for _ in range(leaf_count)]
        self._copies: dict[LeafRoute, int] = {}
        self._rules = tuple(rule if is_base(rule) else self._placed(rule) for rule in rules)

    def placement(self) -> Placement:
        routes = tuple(tuple(route) for route in self._routes)
        return Placement(self.columns, routes, tuple(self._copies), self._rules)

    def _placed(self, rule: Rule) -> Rule:
        """Choose the pivot of a rule; return the rule over copies."""
        pivots = [i for i, atom in enumerate(rule.atoms) if atom == RECURSIVE]
        found = [self._routes_from(rule, pivot) for pivot in pivots]
        if not found:  # nothing recursive: all of it meets everywhere
            found = [[LeafRoute(None)] * len(rule.atoms)]
        routes = min(found, key=lambda routes: self._cost(rule, routes))
        self.cost += self._cost(rule, routes)
        atoms: list[int] = []
        for atom, route in zip(rule.atoms, routes, strict=True):
            if atom != RECURSIVE:
                self._routes[atom][route] = None
                atoms.append(atom)
            elif route == self._home:
                atoms.append(RECURSIVE)
            else:
                number = self._copies.setdefault(route, len(self._copies))
                atoms.append(self._leaf_count + number)
        return replace(rule, atoms=tuple(atoms))

    def _routes_from(self, rule: Rule, pivot: int) -> list[LeafRoute]:
        """Return how the rows of every atom reach the home of the pivot's rows."""
        start = rule.offsets[pivot]
        same = _equal_positions(rule)
        wanted = [same[start + column] for column in self.columns]
        routes: list[LeafRoute] = []
        for atom, offset in enumerate(rule.offsets):
            if atom == pivot:
                routes.append(self._home)
                continue
            here: dict[int, int] = {}
            for position in range(offset, offset + rule.widths[atom]):
                here.setdefault(same[position], position - offset)
            found = tuple(here[group] for group in wanted if group in here)
            routes.append(LeafRoute(found if len(found) == len(wanted) else None))
        return routes

    def _cost(self, rule: Rule, routes: list[LeafRoute]) -> int:
        cost = 0
        for atom, route in zip(rule.atoms, routes, strict=True):
            if atom != RECURSIVE:
                cost += _LEAF_TO_ALL if route.columns is None else 0
            elif route != self._home:
                cost += _COPY_TO_ALL if route.columns is None else _COPY
        return cost


def _candidates(rules: tuple[Rule, ...]) -> list[tuple[int, ...]]:
    """Return sets of home columns, the best first among equally cheap ones."""
    steps = [rule for rule in rules if not is_base(rule) and len(rule.atoms) > 1]
    keyed = [_best_keys(rule) for rule in steps]
    shared = frozenset.intersection(*keyed) if keyed else frozenset()
    width = len(rules[0].head)
    found = [tuple(sorted(keys)) for keys in (shared, *keyed) if keys]
    return list(dict.fromkeys([*found, *((column,) for column in range(width))]))


def _best_keys(rule: Rule) -> frozenset[int]:
    candidates = [
        frozenset(recursive_keys(rule, atom))
        for atom, leaf in enumerate(rule.atoms)
        if leaf != RECURSIVE
    ]
    return max(candidates, key=len, default=frozenset())


def recursive_keys(rule: Rule, atom: int) -> dict[int, int]:
    """Return recursive column -> leaf column of the equalities with one leaf atom."""
    if RECURSIVE not in rule.atoms:
        return {}
    mine = _span(rule, rule.atoms.index(RECURSIVE))
    theirs = _span(rule, atom)
    keys: dict[int, int] = {}
    for a, b in _equal_columns(rule):
        for left, right in ((a, b), (b, a)):
            if left in mine and right in theirs:
                keys.setdefault(left - mine.start, right - theirs.start)
    return keys


def _equal_columns(rule: Rule) -> Iterator[tuple[int, int]]:
    """Yield positions that a predicate says are equal.

    Only columns of one type: equal values of different types hash differently.
    """
    for predicate in rule.predicates:
        match predicate:
            case Call(function="=", arguments=(Column() as a, Column() as b)) if a.dtype == b.dtype:
                yield a.position, b.position


def _equal_positions(rule: Rule) -> list[int]:
    """Return per position of the wide row the least one that is equal to it, also through others.

    Positions without an equality stand for themselves.
    """
    least = list(range(sum(rule.widths)))
    for a, b in _equal_columns(rule):
        one, other = sorted((least[a], least[b]))
        least = [one if group == other else group for group in least]
    return least


def _is_constant(rules: tuple[Rule, ...], columns: tuple[int, ...]) -> bool:
    """Whether every rule writes constants into these columns, as mutual recursion does its tag."""
    heads: list[Expression] = [rule.head[column] for rule in rules for column in columns]
    return all(isinstance(expression, Literal) for expression in heads)


def _span(rule: Rule, atom: int) -> range:
    start = rule.offsets[atom]
    return range(start, start + rule.widths[atom])


class Router:
    """Answers which site owns a row.

    Args:
        sites: All sites of the recursion, in the same order everywhere.
    """

    def __init__(
        self, placement: Placement, sites: tuple[str, ...], owner: OwnerFunction = site_of
    ) -> None:
        self.placement = placement
        self.sites = sites
        self._owner = lru_cache(maxsize=_CACHED_OWNERS)(lambda key: owner(_plain(key), sites))

    def owner_of(self, row: Row) -> str:
        """Return the site whose partition holds a row of the recursive relation."""
        return self._owner(tuple([row[c] for c in self.placement.columns]))

    def leaf_destinations(self, leaf: int, row: Row) -> tuple[str, ...]:
        """Return the sites where a leaf row takes part in joins, in the order of `sites`."""
        chosen: set[str] = set()
        for route in self.placement.routes[leaf]:
            if route.columns is None:
                return self.sites
            chosen.add(self._owner(tuple([row[c] for c in route.columns])))
        return tuple(site for site in self.sites if site in chosen)

    def copy_destinations(self, copy: int, row: Row) -> tuple[str, ...]:
        """Return the sites that keep a copy of a row of the view."""
        columns = self.placement.copies[copy].columns
        if columns is None:
            return self.sites
        return (self._owner(tuple([row[c] for c in columns])),)


def _plain(key: Row) -> Row:
    """Return an equal key that is written in one way only: 0.0 for -0.0."""
    return tuple(v + 0.0 if isinstance(v, float) else v for v in key)
