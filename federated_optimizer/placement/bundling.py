"""Number the pieces and make the fragments of a bundle: f0 gives the result."""

from dataclasses import dataclass

import msgspec

from federated_optimizer.placement.fragment import (
    BasePiece,
    Cut,
    GatewayPiece,
    NetworkPiece,
    Piece,
    StaticPiece,
)
from federated_optimizer.placement.partition import Cutter
from federated_optimizer.placement.topology import Topology
from streamsql.algebra.operators import Plan, RemoteSource, transform_up, walk_plan
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle


@dataclass(frozen=True, slots=True)
class _Route:
    """Where a fragment's rows go."""

    consumer: str = ""
    destinations: tuple[str, ...] = ()
    partition: tuple[int, ...] = ()


class Bundler:
    """Turns the pieces of a cutter into fragments, parents first.

    A fragment has one consumer, so a cut read by two base fragments is made twice; inside one
    consumer equal cuts are one fragment.
    """

    def __init__(self, topology: Topology, cutter: Cutter) -> None:
        self._topology = topology
        self._cutter = cutter
        self._fragments: dict[str, Fragment] = {}
        self._count = 0

    def fragments(self, top: BasePiece) -> tuple[Fragment, ...]:
        """Return all fragments below and including the one that gives the result."""
        self._add(top, self._next_id(), _Route())
        return tuple(self._fragments[f"f{i}"] for i in range(self._count))

    def _next_id(self) -> str:
        self._count += 1
        return f"f{self._count - 1}"

    def _add(self, piece: Piece, name: str, route: _Route) -> None:
        engine, sites, reasons = self._place(piece)
        plan, cuts = self._with_names(piece.plan)
        self._fragments[name] = Fragment(
            id=name,
            engine=engine,
            plan=plan,
            sites=sites,
            consumer=route.consumer,
            destinations=route.destinations,
            partition=route.partition,
            reasons=reasons,
            homes=piece.homes if isinstance(piece, NetworkPiece) else (),
        )
        for child, cut in cuts.items():
            destinations = sites if cut.partition else sites[:1]
            self._add(cut.piece, child, _Route(name, destinations, cut.partition))

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

    def _with_names(self, plan: Plan) -> tuple[Plan, dict[str, Cut]]:
        """Return the plan with final fragment ids in its leaves, and what those stand for."""
        numbers = [n.fragment for n in walk_plan(plan) if isinstance(n, RemoteSource)]
        ids = {number: self._next_id() for number in dict.fromkeys(numbers)}

        def renamed(node: Plan) -> Plan:
            if isinstance(node, RemoteSource):
                return RemoteSource(ids[node.fragment], node.columns)
            return node

        cuts = {ids[number]: self._cutter.cuts[number] for number in ids}
        return (transform_up(plan, renamed), cuts)


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
