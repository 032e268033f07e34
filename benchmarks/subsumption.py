"""The share of implications between filters that is not found.

    python -m benchmarks.subsumption [--quick] [--json] [--seed N] [--out docs/results]

Small worlds have all combinations of a few values of three or four columns as rows: integers,
integers and DOUBLEs, texts, times, BOOLEANs. One filter follows from another one in a world if no
row passes the latter alone. Each two of some hundred random filters are compared in both
directions: of the pairs in which one follows, those are `missed` that `PredicateSet.implies` does
not find. Pairs do not count in which the weaker filter's parts all stand in the stronger one as
they are: these take no proof, and so do not count a filter and itself.

    usual      what queries have: comparisons with constants, BETWEEN, IN, LIKE, differences, OR
    unusual    whatever can be written: sums and products of columns, remainders, units of times,
               disjunctions and negations of it

Also counted, with filters of the second kind: `contradictions`, filters that let no row through
and are not known to; `needless` parts of what is left to check of a filter where the rows of a
weaker one are there; and `lookups`, stronger filters that the index of filters does not find and
comparing pairs does.

What is found must be true in its world: otherwise the run fails. Some of what counts as missed only
is true because a world is small, so the shares are upper bounds.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._figures import print_tables, write_results
from benchmarks._published.pages import with_tables
from benchmarks._subsumption.small_worlds import WORLDS, SmallWorld, clause, usual
from federated_optimizer.canonical.sets.predicate_index import PredicateIndex
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Expression

FILE, PAGE = "subsumption.json", "subsumption.md"
KINDS = ("usual", "unusual")
FILTERS, QUICK = 240, 60


@dataclass(frozen=True, slots=True)
class Counted:
    """Numbers of what there is, and of what of it is found or, of needless parts, superfluous."""

    there: int
    found: int

    @property
    def missed(self) -> float:
        """Share of what is there and not found."""
        return 1 - self.found / self.there if self.there else 0.0


def random_filters(
    random: Random, world: SmallWorld, count: int, *, plain: bool = False
) -> list[list[Expression]]:
    """Return the parts of filters that let some rows of a world through.

    Args:
        random: Of choices.
        world: Of the rows.
        count: How many.
        plain: Whether as queries usually have them.
    """
    author = usual if plain else clause
    pool = [author(random, world.columns) for _ in range(70)]
    found: list[list[Expression]] = []
    while len(found) < count:
        parts = random.sample(pool, random.choice((1, 1, 2, 2, 3, 4)))
        if world.passing(parts):
            found.append(parts)
    return found


def implications(world: SmallWorld, written: Sequence[list[Expression]]) -> Counted:
    """Count the pairs of filters one of which follows from the other, not as they are written.

    Raises:
        AssertionError: One is found that is not true, or equal filters differ.
    """
    sets = [PredicateSet.of(parts) for parts in written]
    masks = [world.passing(parts) for parts in written]
    texts = [frozenset(map(repr, parts)) for parts in written]
    there = found = 0
    for one, mask, text in zip(sets, masks, texts, strict=True):
        for other, other_mask, other_text in zip(sets, masks, texts, strict=True):
            holds, implied = not mask & ~other_mask, one.implies(other)
            _check(holds or not implied, one, other)
            _check(mask == other_mask or one != other, one, other)
            if implied:
                rest = list(one.residual(other))
                _check(world.passing([*other.sources, *rest]) == mask, one, other)
            if not other_text <= text:
                there += holds
                found += implied
    return Counted(there, found)


def _check(holds: bool, one: PredicateSet, other: PredicateSet) -> None:
    if not holds:
        raise AssertionError(f"wrong of {one.sources} and {other.sources}")


def contradictions(random: Random, world: SmallWorld, count: int) -> Counted:
    """Count filters of three parts that let no row through, and those of them that are known to.

    Raises:
        AssertionError: One lets rows through.
    """
    pool = [clause(random, world.columns) for _ in range(60)]
    there = found = 0
    for _ in range(count):
        parts = random.sample(pool, 3)
        is_never, holds = PredicateSet.of(parts).is_never, not world.passing(parts)
        if is_never and not holds:
            raise AssertionError(f"rows pass {parts}")
        there += holds
        found += is_never
    return Counted(there, found)


def needed_parts(random: Random, world: SmallWorld, written: Sequence[list[Expression]]) -> Counted:
    """Count what is left to check of filters over weaker ones, and what of it has an effect."""
    there = found = 0
    for parts in written:
        weaker = [part for part in parts if random.random() < 0.6]
        rest = list(PredicateSet.of(parts).residual(PredicateSet.of(weaker)))
        for each in rest:
            others = [part for part in rest if part is not each]
            there += 1
            found += world.passing([*weaker, *others]) != world.passing(parts)
    return Counted(there, found)


def looked_up(written: Sequence[list[Expression]]) -> Counted:
    """Count stronger filters that pairs find, and those of them that the index finds.

    Raises:
        AssertionError: The index finds others than pairs, or misses weaker ones.
    """
    sets = [PredicateSet.of(parts) for parts in written]
    index: PredicateIndex[int] = PredicateIndex()
    for key, each in enumerate(sets):
        index.add(key, each)
    there = found = 0
    for each in sets:
        weaker = {key for key, other in enumerate(sets) if each.implies(other)}
        stronger = {key for key, other in enumerate(sets) if other.implies(each)}
        seen = index.stronger_or_equal(each)
        if index.weaker_or_equal(each) != weaker or not seen <= stronger:
            raise AssertionError(f"the index finds others than pairs for {each.sources}")
        there += len(stronger)
        found += len(seen)
    return Counted(there, found)


def measured(name: str, count: int, seed: int) -> dict[str, Counted]:
    """Return the figures of a world, by what is counted."""
    world, random = WORLDS[name](), Random(f"{name} {seed}")
    found = {
        kind: implications(world, random_filters(random, world, count, plain=kind == "usual"))
        for kind in KINDS
    }
    written = random_filters(random, world, count)
    return found | {
        "contradictions": contradictions(random, world, 5 * count),
        "needless": needed_parts(random, world, written),
        "lookups": looked_up(written),
    }


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="What follows between filters and is not found.")
    parser.add_argument("--quick", action="store_true", help="fewer filters")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seed", type=int, default=1, help="of the filters")
    parser.add_argument(
        "--out", type=Path, help=f"folder for {FILE}; the tables of its page are written anew"
    )
    options = parser.parse_args(argv)
    count = QUICK if options.quick else FILTERS
    worlds: dict[str, dict[str, dict[str, Any]]] = {
        name: {
            kind: {"there": each.there, "found": each.found, "missed": each.missed}
            for kind, each in measured(name, count, options.seed).items()
        }
        for name in WORLDS
    }
    settings = {"quick": options.quick, "seed": options.seed, "filters": count}
    found = {"benchmark": "subsumption", "settings": settings, "worlds": worlds}
    write_results(options.out, FILE, found)
    if options.out is not None and (page := options.out / PAGE).exists():
        text = page.read_text(encoding="utf-8")
        docs = options.out.resolve().parent
        page.write_text(with_tables(f"results/{PAGE}", text, docs), encoding="utf-8")
    if options.json:
        print(json.dumps(found))
    else:
        print_tables(worlds, digits=4)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
