"""A query that begins late has the answer of one that has run for long, where runs are shared.

Both are installed, which sharing never does: the second one, alone, is the oracle of the first.
"""

import random

import pytest

from federated_optimizer.network.shareable import why_alone
from stream_engine.simulation.network import Network
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.data.events import SourceEvent
from tests.federated_optimizer.network.test_shareable import (
    ALONE,
    CATALOG,
    SHARED,
    SITES,
    bundle_of,
)

SECOND = 1_000_000
GATEWAYS = tuple(SITES.gateways)
ROOMS = ("r1", "r2", "r3", "r4")
MINUTES = 4


def events(chance: random.Random, now: int) -> list[tuple[str, str, SourceEvent]]:
    """Return some events: a key has one gateway."""
    found = []
    for _ in range(chance.randrange(2)):
        number = chance.randrange(len(ROOMS))
        gateway, room = GATEWAYS[number % len(GATEWAYS)], ROOMS[number]
        celsius = float(chance.randrange(5))
        row = {
            "room": (room, chance.choice(("open", "shut"))),
            "air": (room, celsius),
            "reading": (room, celsius),
            "link": (room, chance.choice(ROOMS)),
        }
        source = chance.choice(tuple(row))
        delete = source in {"room", "link"} and chance.random() < 0.3
        found.append((gateway, source, SourceEvent(row[source], now, delete)))
    return found


def late_answers(text: str, seed: int) -> list[bool]:
    """Run a query, and now and then a second one; return whether each time both agree."""
    chance = random.Random(seed)
    bundle = bundle_of(text)
    network = Network((*GATEWAYS, "base", "static"), seed=seed)
    for gateway in GATEWAYS:
        for source in ("room", "air", "reading", "link"):
            definition = CATALOG.find(source)
            network.declare(gateway, definition.scan())  # type: ignore[union-attr]
    tables = {n for f in bundle.fragments for n in walk_plan(f.plan) if isinstance(n, Scan)}
    for scan in tables:
        if scan.source == "machine":
            network.declare("static", scan)
            network.ingest("static", "machine", [SourceEvent(("m1", "r1"), 0)])
    network.install(bundle)
    network.settle()
    found = []
    for step in range(1, MINUTES * 12):
        now = step * 5 * SECOND
        network.advance(now)
        for gateway, source, event in events(chance, now):
            network.ingest(gateway, source, [event])
        network.settle()
        if step % 8 == 0:
            late = bundle_of(text, f"late-{step}")
            network.install(late)
            network.settle()
            found.append(network.result(late.query) == network.result(bundle.query))
    assert not network.failures
    return found


@pytest.mark.parametrize("text", SHARED)
def test_a_late_query_has_the_answer_of_an_early_one(text: str) -> None:
    assert not why_alone(bundle_of(text))
    for seed in range(2):
        assert all(late_answers(text, seed)), f"seed {seed}"


@pytest.mark.parametrize(
    "text", [text for text, _ in ALONE if "sys_" not in text and "ROWS" not in text]
)
def test_a_late_query_that_runs_alone_may_have_another_answer(text: str) -> None:
    assert not all(same for seed in range(2) for same in late_answers(text, seed))
