"""For tests: run a bundle on the reference evaluator, over events of a small federation.

The small federation has sources of every kind the placement tells apart: keyed and unkeyed,
co-located and not, links, and two stored tables. Values are few, so that rows meet.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache

from hypothesis import strategies as st

from federated_optimizer.network.topology import Topology
from streamsql.algebra.operators import (
    Fixpoint,
    Plan,
    RecursiveReference,
    RemoteSource,
    Scan,
    SourceKind,
    walk_plan,
    with_inputs,
)
from streamsql.data.delta import Delta, expand, from_rows
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from streamsql.reference import Database, evaluate
from streamsql.wire.bundles.partitioning import HomeOwner, site_of
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

TEXT, INTEGER, BOOLEAN = DataType.TEXT, DataType.INTEGER, DataType.BOOLEAN
NOW = 20

SEAT = Scan(
    "seat",
    SourceKind.STREAM,
    Schema.of(("mid", TEXT), ("rid", TEXT), ("weight", INTEGER)),
    key=(0,),
    ttl=15,
)
ROOM = Scan(
    "room", SourceKind.STREAM, Schema.of(("rid", TEXT), ("status", INTEGER)), key=(0,), ttl=15
)
HEAT = Scan(
    "heat",
    SourceKind.STREAM,
    Schema.of(("sensor", TEXT), ("rid", TEXT), ("celsius", INTEGER)),
)
NOISE = Scan("noise", SourceKind.STREAM, Schema.of(("rid", TEXT), ("loud", INTEGER)))
LINK = Scan(
    "link",
    SourceKind.LINK,
    Schema.of(("src", TEXT), ("dst", TEXT), ("cost", INTEGER)),
    key=(0, 1),
    ttl=15,
)
MACHINES = Scan("machines", SourceKind.TABLE, Schema.of(("mid", TEXT), ("rid", TEXT)), key=(0,))
SOFTWARE = Scan("software", SourceKind.TABLE, Schema.of(("mid", TEXT), ("name", TEXT)))

STREAMS = (SEAT, ROOM, HEAT, NOISE, LINK)
TABLES = (MACHINES, SOFTWARE)
COLOCATION = {("seat", "rid"): "rid", ("room", "rid"): "rid", ("heat", "rid"): "rid"}

TOPOLOGY = Topology(
    gateways={
        "gw-1": frozenset({"seat", "room", "heat", "link", "noise"}),
        "gw-2": frozenset({"seat", "room", "heat", "link", "noise"}),
        "gw-3": frozenset({"heat", "link"}),
    },
    colocation=COLOCATION,
)
"""Three gateways, one base."""

_SITES = ("site-0", "site-1", "site-2")
SPREAD_TOPOLOGY = Topology(
    gateways=dict.fromkeys(_SITES, frozenset(scan.source for scan in STREAMS)),
    bases=_SITES,
    static=_SITES[0],
    coordinator=_SITES[0],
    colocation=COLOCATION,
)
"""Three sites that are gateways and bases at once."""


# --- running a bundle on the reference evaluator -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Readings:
    """All events, and who has them."""

    whole: Database
    by_site: Mapping[str, Database]

    def at(self, site: str) -> Database:
        """Return what a site has."""
        return self.by_site.get(site, Database())


def evaluate_bundle(bundle: FragmentBundle, readings: Readings, now: int) -> Delta:
    """Return the result of a bundle: every fragment from scratch at each of its sites.

    A fragment with a recursion is evaluated once over what all its sites have, because its sites
    compute the recursion together.
    """
    return received(bundle, readings, now, {})[0]


Arrived = dict[tuple[str, str], list[Row]]
"""Rows by the fragment that sends them and the site that receives them."""


def received(
    bundle: FragmentBundle, readings: Readings, now: int, fed: Mapping[str, Mapping[str, list[Row]]]
) -> tuple[Delta, Arrived]:
    """Return the result of a bundle, and what comes of every fragment, at each site.

    Args:
        bundle: See `evaluate_bundle`.
        readings: All events.
        now: Microseconds since 1970 UTC.
        fed: Rows of fragments that other runs have, by site; what is below them is not evaluated.
    """
    arrived: Arrived = {(name, site): r for name, by in fed.items() for site, r in by.items()}
    for fragment in _producers_first(bundle, fed.keys()):
        if fragment.id in fed:
            continue
        for site, rows in _outputs(fragment, readings, arrived, now):
            if not fragment.consumer:
                arrived[fragment.id, site] = rows
                return from_rows(rows), arrived
            _send(fragment, site, rows, arrived)
    raise AssertionError("no fragment gives the result")


def _producers_first(bundle: FragmentBundle, fed: Set[str]) -> list[Fragment]:
    """Return the fragments, each after those that it reads; the result's last."""
    done: dict[str, Fragment] = {}

    def visit(fragment: Fragment) -> None:
        for node in walk_plan(fragment.plan):
            if isinstance(node, RemoteSource) and fragment.id not in fed:
                visit(bundle.fragment(node.fragment))
        done.setdefault(fragment.id, fragment)

    visit(bundle.fragments[0])
    assert fed or len(done) == len(bundle.fragments)  # noqa: S101  (for tests)
    return list(done.values())


def _outputs(
    fragment: Fragment, readings: Readings, arrived: dict[tuple[str, str], list[Row]], now: int
) -> list[tuple[str, list[Row]]]:
    plan = fragment.plan
    names = [n.fragment for n in walk_plan(plan) if isinstance(n, RemoteSource)]

    def rows_at(plan: Plan, site: str) -> list[Row]:
        # A base fragment that scans a stream itself is given every event of it.
        own = readings.whole if fragment.engine == Engine.BASE else readings.at(site)
        remote = {n: arrived.get((n, site), []) for n in names}
        return list(expand(evaluate(plan, own, now, remote)))

    if len(fragment.sites) > 1 and any(isinstance(node, Fixpoint) for node in walk_plan(plan)):
        leaves: dict[str, list[Row]] = {}
        whole = _over_leaves(plan, fragment.sites, rows_at, leaves)
        result = evaluate(whole, Database(), now, leaves)
        return [(fragment.sites[0], list(expand(result)))]
    return [(site, rows_at(plan, site)) for site in fragment.sites]


def _over_leaves(
    plan: Plan,
    sites: tuple[str, ...],
    rows_at: Callable[[Plan, str], list[Row]],
    leaves: dict[str, list[Row]],
) -> Plan:
    """Return a recursion that sites compute together over the rows that all of them have."""
    if isinstance(plan, RecursiveReference):
        return plan
    if not any(isinstance(node, RecursiveReference) for node in walk_plan(plan)):
        name = f"leaf {len(leaves)}"
        leaves[name] = [row for site in sites for row in rows_at(plan, site)]
        return RemoteSource(name, plan.schema)
    inputs = tuple(_over_leaves(child, sites, rows_at, leaves) for child in plan.inputs)
    return with_inputs(plan, inputs)


def _send(
    fragment: Fragment, _site: str, rows: list[Row], arrived: dict[tuple[str, str], list[Row]]
) -> None:
    for row in rows:
        targets = fragment.destinations
        if fragment.partition:
            key = tuple(row[p] for p in fragment.partition)
            owner = HomeOwner(dict(fragment.homes)) if fragment.homes else site_of
            targets = (owner(key, fragment.destinations),)
        for target in targets:
            arrived.setdefault((fragment.id, target), []).append(row)


# --- readings ------------------------------------------------------------------------------------

NAMES: st.SearchStrategy[Value] = st.sampled_from(["a", "b", "c"])
NUMBERS: st.SearchStrategy[Value] = st.sampled_from([None, 0, 1, 2])
"""Values are few, so that rows meet."""


def _gateway_of(name: str | None, sites: tuple[str, ...]) -> str:
    return sites[0] if name is None else sites[ord(name[0]) % len(sites)]


@st.composite
def readings(draw: st.DrawFn, topology: Topology, *, least: int = 0) -> Readings:
    """Return events that keep the promises of keys and co-location.

    Args:
        draw: Given by Hypothesis.
        topology: Who owns which source.
        least: Fewest events of every stream; with some, all are recent and none is withdrawn.
    """
    whole = Database()
    by_site: dict[str, Database] = {}
    for scan in STREAMS:
        owners = topology.owners(scan.source)
        for row, ts, delete in draw(st.lists(_events(scan), min_size=least, max_size=8)):
            event = SourceEvent(row, NOW, delete=False) if least else SourceEvent(row, ts, delete)
            site = _owner(draw, scan, row, owners)
            for database in (whole, by_site.setdefault(site, Database())):
                database.append(scan.source, [event])
    for scan in TABLES:
        rows = [SourceEvent(row, 0) for row in draw(st.lists(_rows(scan), max_size=5))]
        for database in (whole, by_site.setdefault(topology.static, Database())):
            database.append(scan.source, rows)
    return Readings(whole, by_site)


def _owner(draw: st.DrawFn, scan: Scan, row: Row, owners: tuple[str, ...]) -> str:
    """Rows of one co-located value, and of one key, always come from one gateway."""
    names = scan.schema.names
    if "rid" in names and (scan.source, "rid") in COLOCATION:
        # Every owner of a co-located source must have the value's other rows, too.
        common = owners[:2]
        value = row[names.index("rid")]
        return _gateway_of(None if value is None else str(value), common)
    if scan.key:
        return _gateway_of(str(row[0]), owners)
    return draw(st.sampled_from(owners))


@lru_cache
def _rows(scan: Scan) -> st.SearchStrategy[Row]:
    columns: list[st.SearchStrategy[Value]] = [
        NAMES if f.dtype == TEXT else NUMBERS for f in scan.schema.fields
    ]
    if scan is SEAT:
        # A seat does not move: its room follows from it.
        return st.tuples(NAMES, NUMBERS).map(lambda pair: (pair[0], pair[0], pair[1]))
    if scan is HEAT:
        columns[1] = st.sampled_from([None, "a", "b"])
    return st.tuples(*columns)


@lru_cache
def _events(scan: Scan) -> st.SearchStrategy[tuple[Row, int, bool]]:
    # A reading is withdrawn where it came from; rows of NOISE do not tell where that was.
    deleted = st.just(value=False) if scan is NOISE else st.sampled_from([False, False, True])
    return st.tuples(_rows(scan), st.integers(0, NOW), deleted)
