"""Joins device by device: the gateway where a pair of devices meets is chosen for each pair.

The join column is the key of a source, so it names a device, and gateways announce their devices.
Rows about a device are joined at the gateway that has it: there one of the two sides need not
travel. If both sides are about devices with this key, the gateway is taken to which less has to
travel, by what each side sends and the hops to there and on to the base. A device that nobody has
announced is joined where the hash of its key says.

All sites take the homes from the plan, so rows that meet go to one gateway even if a device has
moved since: homes say what is cheap, not what is right. Homes of a query that runs stay as long as
its gateways do.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice

from federated_optimizer.alternatives.gateway_pieces import TwoSided, pairs_of
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.joins.hashed_join import met_colocations
from federated_optimizer.alternatives.joins.meeting import (
    Meeting,
    Move,
    meeting_sites,
    why_not_by_key,
)
from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.pieces import GatewayPiece
from federated_optimizer.alternatives.recursion.recursions import MAX_HOMES
from federated_optimizer.alternatives.words import names_text
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Devices, Statistics
from streamsql.algebra.column_origins import column_origins
from streamsql.algebra.operators import Plan, Scan, walk_plan
from streamsql.data.types import DataType

NO_DEVICES: Mapping[str, str] = {}


def paired_join(  # noqa: PLR0913, PLR0917  (what the method depends on)
    plan: TwoSided,
    left: GatewayPiece,
    right: GatewayPiece,
    topology: Topology,
    statistics: Statistics,
    kept: Heuristics = ALL,
) -> Meeting | Refused:
    """Return the join at gateways chosen for each device, or why it is not computed so."""
    refused = why_not_by_key(plan, left, right, kept)
    if refused is not None:
        return refused
    pairs = pairs_of(plan)
    a, b = pairs[0]
    sources = keyed_by(plan.left, a), keyed_by(plan.right, b)
    if len(pairs) > 1 or not any(sources):
        return Refused("its key is not the one TEXT that is the key of a source of devices")
    sites = meeting_sites(left, right, topology)
    devices = statistics.devices
    owners = [devices.gateways.get(source, NO_DEVICES) for source in sources]
    made = _homes(sources, owners, sites, topology.bases[0], statistics)
    running = devices.homes.get((tuple(sorted(sources)), sites))
    homes = running or tuple(islice(made, MAX_HOMES))
    home = {device: sites[index] for device, index in homes}
    a_move, b_move = (
        # Rows that were joined before do not come from the gateway of their device.
        Move((column,), homes, None if side.joins else _away(owned, home, source, devices))
        for column, owned, source, side in zip(
            pairs[0], owners, sources, (left, right), strict=True
        )
    )
    named = names_text(source for source in sources if source)
    place = "a gateway chosen for it" if homes else "the gateway of its hash, as none is announced"
    words = f"rows about a device of {named} joined at {place}"
    return Meeting(sites, a_move, b_move, met_colocations(plan, a_move, sites), words)


def keyed_by(side: Plan, column: int) -> str:
    """Return the source, in lower case, of which a column is the whole key, if it is TEXT."""
    origin = column_origins(side)[column]
    if origin is None or side.schema.dtypes[column] != DataType.TEXT:
        return ""
    keys = {node.source: node.key for node in walk_plan(side) if isinstance(node, Scan)}
    return origin[0].lower() if keys.get(origin[0]) == (origin[1],) else ""


def _homes(
    sources: tuple[str, str],
    owners: list[Mapping[str, str]],
    sites: tuple[str, ...],
    base: str,
    statistics: Statistics,
) -> Iterator[tuple[str, int]]:
    """Yield for each device the gateway at which its rows meet at least cost.

    What each side sends travels from its gateway there, hop by hop, and on to the base with what it
    has met. That is alike for all devices of the same two gateways.
    """
    index, sent = {site: number for number, site in enumerate(sites)}, statistics.devices.sent

    def hops(a: str, b: str) -> float:
        return statistics.wires.between(a, b) if a != b else 0.0

    @cache
    def best(owning: tuple[str | None, ...]) -> int | None:
        having = [
            (gateway, sent(source, gateway))
            for source, gateway in zip(sources, owning, strict=True)
            if gateway is not None and gateway in index
        ]

        def cost(at: str) -> float:
            return sum(size * (hops(gateway, at) + hops(at, base)) for gateway, size in having)

        return index[min((gateway for gateway, _ in having), key=cost)] if having else None

    for device in sorted({*owners[0], *owners[1]}):
        home = best((owners[0].get(device), owners[1].get(device)))
        if home is not None:
            yield device, home


def _away(
    owned: Mapping[str, str], home: Mapping[str, str], source: str, devices: Devices
) -> float | None:
    """Return the share of a side's rows that leave their gateway; None if nobody knows."""
    if not owned:
        return None
    ways = Counter((gateway, home.get(device) != gateway) for device, gateway in owned.items())
    sent = {way: number * devices.sent(source, way[0]) for way, number in ways.items()}
    leave = sum(size for (_, leaves), size in sent.items() if leaves)
    return leave / (sum(sent.values()) or 1.0)
