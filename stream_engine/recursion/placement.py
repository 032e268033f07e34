"""Where the rows of a recursion live when several sites compute it together.

The recursive relation is partitioned by hash: of its join-key columns if every step rule joins a
leaf on the same ones, else of its first column. A leaf row goes where it joins: to the partition of
its key, or to every site where no such key exists (theta joins, further leaves of a rule).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from stream_engine.recursion.rules import RECURSIVE, Rule
from streamsql.algebra.expressions import Call, Column
from streamsql.data.types import Row
from streamsql.wire.partitioning import site_of

OwnerFunction = Callable[[Row, tuple[str, ...]], str]
_CACHED_OWNERS = 65_536


@dataclass(frozen=True, slots=True)
class LeafRoute:
    """How the rows of a leaf travel: by these of its columns, or to all sites (None)."""

    columns: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Partitioning columns of the recursive relation, and routes of every leaf."""

    columns: tuple[int, ...]
    routes: tuple[tuple[LeafRoute, ...], ...]


def is_base(rule: Rule) -> bool:
    """Whether a rule can be evaluated where its only leaf's rows arrive."""
    return rule.atoms != (RECURSIVE,) and len(rule.atoms) == 1


def placement_of(rules: tuple[Rule, ...], leaf_count: int) -> Placement:
    """Choose the partitioning of a recursion."""
    steps = [rule for rule in rules if not is_base(rule)]
    keyed = [_best_keys(rule) for rule in steps if len(rule.atoms) > 1]
    shared = frozenset.intersection(*keyed) if keyed else frozenset()
    columns = tuple(sorted(shared)) or (0,)
    routes: list[dict[LeafRoute, None]] = [{} for _ in range(leaf_count)]
    for rule in steps:
        for atom, leaf in enumerate(rule.atoms):
            if leaf != RECURSIVE:
                keys = recursive_keys(rule, atom)
                found = tuple(keys[c] for c in columns) if keys.keys() >= set(columns) else None
                routes[leaf][LeafRoute(found)] = None
    return Placement(columns, tuple(tuple(r) for r in routes))


def _best_keys(rule: Rule) -> frozenset[int]:
    candidates = [
        frozenset(recursive_keys(rule, atom))
        for atom, leaf in enumerate(rule.atoms)
        if leaf != RECURSIVE
    ]
    return max(candidates, key=len)


def recursive_keys(rule: Rule, atom: int) -> dict[int, int]:
    """Return recursive column -> leaf column of the equalities with one leaf atom."""
    if RECURSIVE not in rule.atoms:
        return {}
    recursive = rule.atoms.index(RECURSIVE)
    mine = _span(rule, recursive)
    theirs = _span(rule, atom)
    keys: dict[int, int] = {}
    for predicate in rule.predicates:
        match predicate:
            # Only columns of one type: equal values of different types hash differently.
            case Call(function="=", arguments=(Column() as a, Column() as b)) if a.dtype == b.dtype:
                for left, right in ((a, b), (b, a)):
                    if left.position in mine and right.position in theirs:
                        keys.setdefault(left.position - mine.start, right.position - theirs.start)
    return keys


def _span(rule: Rule, atom: int) -> range:
    start = rule.offsets[atom]
    return range(start, start + rule.widths[atom])


class Router:
    """Answers which site owns a row.

    Args:
        sites: All sites of the recursion, in the same order everywhere.
        owner: Chooses the site of a key.
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


def _plain(key: Row) -> Row:
    """Return an equal key that is written in one way only: 0.0 for -0.0."""
    return tuple(v + 0.0 if isinstance(v, float) else v for v in key)
