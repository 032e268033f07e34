"""Recursions over four sites under random changes and deliveries, for tests of absorption."""

import random

from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_schedules import database
from streamsql.algebra.choices import Annotations, Shipping, Strategy
from streamsql.algebra.operators import Fixpoint
from streamsql.data.types import Row
from streamsql.reference import evaluate

SITES = ("s0", "s1", "s2", "s3")
NODES = "abcde"
LINKS = [(a, b, cost) for a in NODES for b in NODES if a != b for cost in (1, 3)]
OPTIONS = [
    RecursionOptions(
        strategy=Strategy.ABSORPTION, shipping=shipping, annotations=annotations, width=width
    )
    for annotations in (Annotations.DNF, Annotations.BDD)
    for shipping in Shipping
    for width in (1, 64)
    if shipping is not Shipping.WITNESS or (annotations, width) == (Annotations.DNF, 64)
]


def describe(value: object) -> str | None:
    """Return the id of a program or of options as a parameter of a test."""
    match value:
        case Fixpoint():
            return value.name
        case RecursionOptions():
            return f"{value.shipping}-{value.annotations}-{value.width}"
        case _:
            return None


def run_schedule(
    node: Fixpoint, options: RecursionOptions, seed: int, changes: int = 30
) -> tuple[Ensemble, set[Row]]:
    """Toggle random links at random sites among random deliveries; return the oracle's rows too."""
    choice = random.Random(seed)
    ensemble = Ensemble(node, SITES, options, seed=seed)
    live: set[Row] = set()
    home: dict[Row, str] = {}
    for _ in range(changes):
        row = choice.choice(LINKS)
        site = home.setdefault(row, choice.choice(SITES))
        ensemble.apply(site, 0, {row: -1 if row in live else 1})
        live ^= {row}
        ensemble.step(site)
        for _ in range(choice.randrange(6)):
            ensemble.act()
    ensemble.run()
    return ensemble, set(evaluate(node, database({"link": live}), 0))
