"""Counts of sites prove that a run has read as much as another; the oracle knows what they read."""

import random
from collections import deque
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from federated_optimizer.coordinator.adaptation.run_cuts import is_not_behind
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.sites.flows import FlowReports
from streamsql.algebra.operators import RemoteSource, Scan, SourceKind
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle
from streamsql.wire.messages import FlowReport

GATEWAYS = ("gw-1", "gw-2")
SITES = ("base", *GATEWAYS)
SCHEMA = Schema.of(("a", DataType.TEXT))
BUNDLE = FragmentBundle(
    "q1",
    1,
    (
        Fragment("f0", Engine.BASE, RemoteSource("f1", SCHEMA), ("base",)),
        Fragment(
            "f1", Engine.GATEWAY, Scan("s", SourceKind.STREAM, SCHEMA), GATEWAYS, "f0", ("base",)
        ),
    ),
    SCHEMA,
)
EVENTS = 4_000


class Run:
    """A run whose batches carry what they were made from, as no real ones do."""

    def __init__(self) -> None:
        self.wires: dict[str, deque[int]] = {gateway: deque() for gateway in GATEWAYS}
        self.sent = dict.fromkeys(SITES, 0)
        self.came = dict.fromkeys(GATEWAYS, 0)
        self.base = dict.fromkeys(GATEWAYS, 0)
        self.out: deque[dict[str, int]] = deque()
        self.answer = dict.fromkeys(GATEWAYS, 0)
        self.received = {"base": 0}
        self.flows = FlowReports()

    def query(self, bundle: FragmentBundle = BUNDLE) -> RunningQuery:
        result = SimpleNamespace(received=lambda: self.received, lives=lambda: {"base": 1})
        query = SimpleNamespace(
            bundle=bundle,
            flows=self.flows,
            result=result,
            read_by_bases=frozenset,
            leader_of=lambda _run: None,
        )
        return cast("RunningQuery", query)

    def read(self, gateway: str, reading: int) -> None:
        self.wires[gateway].append(reading)
        self.sent[gateway] += 1

    def arrive(self, gateway: str) -> None:
        if self.wires[gateway]:
            self.base[gateway] = self.wires[gateway].popleft()
            self.came[gateway] += 1
            self.out.append(dict(self.base))
            self.sent["base"] += 1

    def show(self) -> None:
        if self.out:
            self.answer = self.out.popleft()
            self.received["base"] += 1

    def report(self, site: str) -> FlowReport:
        if site == "base":
            lives = dict.fromkeys(GATEWAYS, 1)
            return FlowReport(1, 1, {"": self.sent["base"]}, dict(self.came), lives=lives)
        return FlowReport(1, 1, {"base": self.sent[site]}, {})


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_order_of_messages_it_is_never_said_of_a_run_that_is_behind(seed: int) -> None:
    chance = random.Random(seed)
    old, new = runs = (Run(), Run())
    told: dict[str, deque[tuple[FlowReport, ...]]] = {site: deque() for site in SITES}
    message = readings = proved = in_motion = 0
    for _ in range(EVENTS):
        what, run, site = chance.random(), chance.choice(runs), chance.choice(SITES)
        gateway = chance.choice(GATEWAYS)
        if what < 0.02:
            readings += 1
            for each in runs:
                each.read(gateway, readings)
        elif what < 0.32:
            run.arrive(gateway)
        elif what < 0.62:
            run.show()
        elif what < 0.74:
            told[site].append(tuple(each.report(site) for each in runs))
        elif told[site]:
            reports = told[site].popleft()
            message += 1
            kept = chance.choice(((0, 1), (0, 1), (0, 1), (0,), (1,), ()))  # others are lost
            for number in kept:
                runs[number].flows.hear(site, reports[number], BUNDLE, message)
        if is_not_behind(new.query(), old.query()):
            proved += 1
            in_motion += any(new.wires.values()) or any(old.wires.values())
            behind = {g for g in GATEWAYS if new.answer[g] < old.answer[g]}
            assert not behind, (new.answer, old.answer)
    assert proved > in_motion > 0, "it is said amid changes"


def agreed() -> tuple[Run, Run]:
    """Two runs that are at rest, with reports in one message."""
    runs = (Run(), Run())
    for run in runs:
        for number, gateway in enumerate(GATEWAYS):
            run.read(gateway, number + 1)
            run.arrive(gateway)
            run.show()
        for number, site in enumerate(SITES):
            run.flows.hear(site, run.report(site), BUNDLE, number + 1)
    return runs


def test_runs_at_rest_are_not_behind_each_other() -> None:
    old, new = agreed()
    assert is_not_behind(new.query(), old.query())
    assert is_not_behind(old.query(), new.query())


def test_a_run_that_is_ahead_is_not_behind_but_the_other_may_be() -> None:
    old, new = agreed()
    for run in (old, new):
        run.read("gw-1", 9)
    new.arrive("gw-1")
    new.show()
    for number, site in enumerate(SITES):
        for run in (old, new):
            run.flows.hear(site, run.report(site), BUNDLE, 10 + number)
    assert is_not_behind(new.query(), old.query())
    assert not is_not_behind(old.query(), new.query())


def test_nobody_knows_of_counts_that_were_told_otherwise_or_of_other_lives() -> None:
    old, new = agreed()
    new.flows.hear("gw-1", new.report("gw-1"), BUNDLE)
    assert not is_not_behind(new.query(), old.query()), "in no message"
    old, new = agreed()
    for run in (old, new):
        run.flows.hear("gw-1", run.report("gw-1"), BUNDLE)
    assert not is_not_behind(new.query(), old.query()), "both in no message"
    old, new = agreed()
    old.flows.hear("gw-1", old.report("gw-1"), BUNDLE, 9)
    assert not is_not_behind(new.query(), old.query()), "an older message"
    old, new = agreed()
    new.flows.hear("gw-1", replace(new.report("gw-1"), busy=True), BUNDLE, 9)
    assert not is_not_behind(new.query(), old.query()), "a site works"
    old, new = agreed()
    new.flows.hear("gw-1", replace(new.report("gw-1"), epoch=2), BUNDLE, 9)
    assert not is_not_behind(new.query(), old.query()), "another incarnation"
    old, new = agreed()
    old.flows.left("gw-1")
    assert not is_not_behind(new.query(), old.query()), "a site was away"
    old, new = agreed()
    silent = replace(old.report("base"), received={"gw-1": 1}, lives={"gw-1": 1})
    old.flows.hear("base", silent, BUNDLE, 3)
    assert not is_not_behind(new.query(), old.query()), "a channel waits for a snapshot"
    old, new = agreed()
    old.flows.hear("gw-1", replace(old.report("gw-1"), sent={}), BUNDLE, 2)
    assert not is_not_behind(new.query(), old.query()), "a channel whose sender does not know it"


def test_runs_that_read_otherwise_are_not_compared() -> None:
    old, new = agreed()
    fed: Any = replace(BUNDLE, feeds=(Feed("f1", "q0", 1, "f1"),))
    assert not is_not_behind(new.query(fed), old.query())
    alone = replace(BUNDLE, fragments=BUNDLE.fragments[:1])
    assert not is_not_behind(new.query(), old.query(alone))
    static = replace(BUNDLE.fragments[0], engine=Engine.STATIC)
    stored = replace(BUNDLE, fragments=(static, BUNDLE.fragments[1]))
    assert not is_not_behind(new.query(stored), old.query())
