"""Number the pieces and make the fragments of a bundle: f0 gives the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import msgspec

from federated_optimizer.alternatives.pieces import (
    BasePiece,
    GatewayPiece,
    NetworkPiece,
    Piece,
    StaticPiece,
)
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.cutting.fed_fragments import FedFragments, renamed
from federated_optimizer.network.topology import Topology
from federated_optimizer.sharing.node_offers import NO_OFFERS, Offer, is_node_name
from streamsql.algebra.operators import (
    Aggregate,
    Fixpoint,
    Plan,
    RemoteSource,
    Scan,
    walk_plan,
)
from streamsql.algebra.source_groups import source_groups
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle
from streamsql.wire.site_messages import PAST_ROW_COST


@dataclass(frozen=True, slots=True)
class _Route:
    """The way of a fragment's rows."""

    consumer: str = ""
    destinations: tuple[str, ...] = ()
    partition: tuple[int, ...] = ()
    homes: tuple[tuple[str, int], ...] = ()


class Bundler:
    """Turns the pieces of a cutter into fragments.

    Equal cuts that go to the same sites are one fragment, whichever fragments read it there: its
    rows are sent once. Its `consumer` is the first of them.
    """

    def __init__(
        self, topology: Topology, cutter: Cutter, offers: Mapping[str, Offer] = NO_OFFERS
    ) -> None:
        self._topology = topology
        self._fed = FedFragments(offers, self._next_id)
        self._cutter = cutter
        self._fragments: dict[str, Fragment] = {}
        self._count = 0
        self._ids: dict[tuple[str, tuple[str, ...]], str] = {}  # by cut and where it goes

    def fragments(self, top: BasePiece) -> tuple[Fragment, ...]:
        """Return all fragments below and including the one that gives the result."""
        self._add(top, self._next_id(), _Route())
        return tuple(self._fragments[f"f{i}"] for i in range(self._count))

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """The fragments that other runs have."""
        return tuple(self._fed.feeds)

    def _next_id(self) -> str:
        self._count += 1
        return f"f{self._count - 1}"

    def _add(self, piece: Piece, name: str, route: _Route) -> None:
        """Add a fragment and those below it that no other one reads yet.

        Args:
            piece: Computed by the fragment.
            name: Its id.
            route: To its first reader.
        """
        engine, sites, reasons = self._place(piece)
        leaves = dict.fromkeys(n.fragment for n in walk_plan(piece.plan) if _is_leaf(n))
        routes = {number: self._route(number, name, sites) for number in leaves}
        ids: dict[str, str] = {}
        first: list[str] = []
        for number, way in routes.items():
            key = number, way.destinations
            if key not in self._ids:
                self._ids[key] = self._next_id()
                first.append(number)
            ids[number] = self._ids[key]
        self._fragments[name] = Fragment(
            id=name,
            engine=engine,
            plan=renamed(piece.plan, ids),
            sites=sites,
            consumer=route.consumer,
            destinations=route.destinations,
            partition=route.partition,
            reasons=reasons,
            homes=piece.homes if isinstance(piece, NetworkPiece) else route.homes,
            notes=self._notes(piece) if isinstance(piece, StaticPiece) else (),
            grouped=self._grouped(piece) if isinstance(piece, StaticPiece) else (),
        )
        for number in first:
            if is_node_name(number):
                for fed in self._fed.copied(number, ids[number], name):
                    self._fragments[fed.id] = fed
                continue
            below = self._cutter.cuts.get(number)
            keys = self._cutter.keys[number] if below is None else below.piece
            self._add(keys, ids[number], routes[number])

    def _route(self, number: str, reader: str, sites: tuple[str, ...]) -> _Route:
        """Return the way of a cut's rows, or of a stream's keys, to the sites of a reader."""
        cut = self._cutter.cuts.get(number)
        if cut is None:
            return _Route(reader, sites)
        to = sites if cut.partition or cut.to_all else sites[:1]
        return _Route(reader, to, cut.partition, cut.homes)

    def _notes(self, piece: StaticPiece) -> tuple[str, ...]:
        """Return what to tell of a static piece: also who evaluates it, if that is known."""
        statistics = self._cutter.statistics
        limit = statistics.local_rows
        if piece.notes or limit is None or self._grouped(piece):
            return piece.notes  # nobody knows how many groups a database has
        nodes = list(walk_plan(piece.plan))
        if any(isinstance(node, Fixpoint) for node in nodes):
            return ("evaluated by Spark: nobody knows the rounds of a recursion before",)
        if any(isinstance(node, Scan) and node.history is not None for node in nodes):
            # EXPLAIN adds how much that is; what the table has now says nothing about its past.
            return (
                f"evaluated in the static engine's process up to about {limit:,} rows read and "
                f"paired, above by Spark; a row of the past counts as {PAST_ROW_COST}",
            )
        facts = [statistics.sources.get(name.lower()) for name in piece.tables]
        rows = [fact.rows for fact in facts if fact is not None and fact.rows is not None]
        if len(rows) < len(piece.tables):
            return ()
        who = "in the static engine's process" if sum(rows) <= limit else "by Spark"
        return (
            f"evaluated {who}: about {sum(rows):,.0f} rows are read; Spark takes over at about "
            f"{limit:,} rows read and paired",
        )

    def _grouped(self, piece: StaticPiece) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return the tables whose groups a database computes, with the columns it compares."""
        if any(isinstance(node, RemoteSource) for node in walk_plan(piece.plan)):
            return ()  # its table is asked for keys, or read whole to look them up
        found: dict[str, tuple[int, ...]] = {}
        for node in walk_plan(piece.plan):
            groups = source_groups(node) if isinstance(node, Aggregate) else None
            if groups is None:
                continue
            fact = self._cutter.statistics.sources.get(groups.scan.source.lower())
            compared = fact.compared if fact is not None else frozenset()
            names = groups.scan.columns.names
            places = tuple(place for place, name in enumerate(names) if name in compared)
            if places and groups.columns <= set(places):
                found[groups.scan.source] = places
        return tuple(found.items())

    def _place(self, piece: Piece) -> tuple[Engine, tuple[str, ...], tuple[str, ...]]:
        match piece:
            case GatewayPiece(sites=sites):
                return (Engine.GATEWAY, sites, ())
            case NetworkPiece(sites=sites, reasons=reasons):
                return (Engine.GATEWAY, sites, tuple(dict.fromkeys(reasons)))
            case StaticPiece(site=site):
                return (Engine.STATIC, (site,), ())
            case BasePiece(spread=spread, reasons=reasons):
                bases = self._topology.bases
                sites = bases[:1] if spread.single else bases
                return (Engine.BASE, sites, tuple(dict.fromkeys(reasons)))


def _is_leaf(plan: Plan) -> TypeGuard[RemoteSource]:
    return isinstance(plan, RemoteSource)


def ungathered(bundle: FragmentBundle) -> FragmentBundle:
    """Return a bundle whose gateways give their rows themselves, where a base only gathers them.

    Its result says of every row which gateways have it.
    """
    match bundle.fragments:
        case (Fragment(plan=RemoteSource()), Fragment(engine=Engine.GATEWAY, sites=sites) as sent):
            alone = msgspec.structs.replace(sent, consumer="", destinations=(), partition=())
            return msgspec.structs.replace(bundle, fragments=(alone,)) if sites else bundle
        case _:
            return bundle
