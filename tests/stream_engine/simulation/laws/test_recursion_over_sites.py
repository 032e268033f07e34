"""Recursions over several sites settle to the reference, through loss, death and return."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from stream_engine.simulation.fragmentations import everywhere
from stream_engine.simulation.network import Faults, Network
from streamsql.algebra.expressions import Call, Column
from streamsql.algebra.operators import (
    AggregateSelection,
    Best,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
    Scan,
    SourceKind,
    walk_plan,
)
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from tests.stream_engine.link_networks import (
    SITES,
    Happening,
    LinkNetwork,
    death_and_return,
    disconnection,
    nothing,
    reinstallation,
)

EXAMPLES = settings(max_examples=settings().max_examples * 2 // 3)
NODES = "abcd"
LINK = Scan(
    "link",
    SourceKind.LINK,
    Schema.of(("src", DataType.TEXT), ("dst", DataType.TEXT), ("cost", DataType.INTEGER)),
    key=(0, 1),
)
SRC, DST = Column(0, "src", DataType.TEXT), Column(1, "dst", DataType.TEXT)


def reachable() -> Plan:
    pair = Schema.of(("src", DataType.TEXT), ("dst", DataType.TEXT))
    step = Join(LINK, RecursiveReference("reachable", pair), JoinKind.INNER, ((1, 0),))
    names = ("src", "dst")
    return Fixpoint(
        "reachable",
        pair,
        (Project(LINK, (SRC, DST), names),),
        (Project(step, (SRC, Column(4, "dst", DataType.TEXT)), names),),
    )


def cheapest() -> Plan:
    columns = LINK.columns
    step = Join(LINK, RecursiveReference("cheapest", columns), JoinKind.INNER, ((1, 0),))
    cost = Call(
        "+",
        (Column(2, "cost", DataType.INTEGER), Column(5, "cost", DataType.INTEGER)),
        DataType.INTEGER,
    )
    path = Project(step, (SRC, Column(4, "dst", DataType.TEXT), cost), ("src", "dst", "cost"))
    return Fixpoint(
        "cheapest", columns, (LINK,), (path,), selection=AggregateSelection((0, 1), (Best(2),))
    )


class Links(LinkNetwork):
    """Sites that own the links leaving some nodes each; a link's newest cost counts."""

    def __init__(self, plan: Plan, seed: int, faults: Faults) -> None:
        super().__init__(plan, seed, faults, LINK)
        self.events: dict[str, list[SourceEvent]] = {site: [] for site in SITES}

    @override
    def change(self) -> None:
        source, target = self.random.choice(NODES), self.random.choice(NODES)
        site = SITES[NODES.index(source) % len(SITES)]
        row: Row = (source, target, self.random.choice((1, 2, 5)))
        event = SourceEvent(row, 0, delete=self.random.random() < 0.4)
        if site in self.network.sites:
            self.network.ingest(site, "link", [event])
            self.events[site].append(event)

    @override
    def events_of(self, site: str) -> list[SourceEvent]:
        return self.events[site]


@EXAMPLES
@pytest.mark.parametrize("plan", [reachable(), cheapest()], ids=["reachable", "cheapest"])
@pytest.mark.parametrize(
    ("faults", "happening", "rounds"),
    [
        pytest.param(Faults(), nothing, 3, id="any order of delivery"),
        pytest.param(Faults(loss=0.15, repetition=0.15), nothing, 3, id="loss and repetition"),
        pytest.param(Faults(loss=0.05, repetition=0.05), death_and_return, 2, id="deaths"),
        pytest.param(Faults(loss=0.05), disconnection, 2, id="a site held for dead"),
        pytest.param(Faults(loss=0.05, repetition=0.05), reinstallation, 2, id="a query lost"),
    ],
)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_it_settles_to_the_reference(
    plan: Plan, faults: Faults, happening: Happening, rounds: int, seed: int
) -> None:
    links = Links(plan, seed, faults)
    for _ in range(rounds):
        links.run(40)
        happening(links)
        links.check()


def test_a_dead_site_takes_exactly_what_rests_on_its_links() -> None:
    """What another path supports stays; the dead site's partition is gone with it."""
    links = Links(reachable(), 1, Faults())
    rows: list[tuple[str, Row]] = [
        ("gw-1", ("a", "b", 1)),
        ("gw-2", ("b", "c", 1)),
        ("base", ("c", "a", 1)),
    ]
    for site, row in rows:
        links.network.ingest(site, "link", [SourceEvent(row, 0)])
    links.network.settle()
    assert len(links.network.result("q")) == 9
    links.network.kill("gw-1")
    links.network.settle()
    remaining = links.network.result("q")
    assert set(remaining) <= {("b", "c"), ("c", "a"), ("b", "a")}
    owners = dict.fromkeys(remaining, 1)
    assert remaining == owners


def test_a_recursion_without_end_stops_only_its_query() -> None:
    plan = next(node for node in walk_plan(reachable()) if isinstance(node, Fixpoint))
    small = Fixpoint(plan.name, plan.columns, plan.base, plan.step, limit=2)
    network = Network(("base",))
    network.declare("base", LINK)
    network.install(everywhere(small, ("base",), query="small"))
    network.install(everywhere(reachable(), ("base",)))
    rows: list[Row] = [("a", "b", 1), ("b", "c", 1), ("c", "d", 1)]
    network.ingest("base", "link", [SourceEvent(row, 0) for row in rows])
    network.settle()
    ((site, query, error),) = network.failures
    assert (site, query, error.code) == ("base", "small", "recursion_limit")
    assert len(network.result("q")) == 6
