"""Devices by the keys of the rows that gateways have announced in their births."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from federated_optimizer.alternatives.joins.paired_join import keyed_by
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.costs.relations.estimates import row_bytes
from federated_optimizer.costs.tree_shares import trees_in
from federated_optimizer.statistics.fact import Quantity, SubjectKind
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.planning_statistics import Devices, Met
from streamsql.algebra.operators import Join, Plan, RemoteSource, walk_plan
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType
from streamsql.wire.fragments import Fragment, FragmentBundle
from streamsql.wire.site_messages import Birth

MAX_DEVICES = 20_000
"""Of all sources, that are looked at."""

Gateways = Mapping[str, Mapping[str, str]]
"""By source, in lower case, and name of the device."""


class Known(Protocol):
    """Definitions, sites and facts of the coordinator."""

    @property
    def catalog(self) -> Catalog:
        """All definitions."""

    @property
    def membership(self) -> Membership:
        """The sites."""

    @property
    def facts(self) -> Facts:
        """All there are."""


class AnnouncedDevices:
    """The devices that gateways have announced, looked through again only if births have changed.

    Args:
        known: Of the coordinator.
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        self._seen: tuple[int, tuple[SourceDefinition, ...]] | None = None
        self._gateways: Gateways = {}
        self._sent: tuple[object, Devices] = (None, Devices())

    def devices(self, current: FragmentBundle | None) -> Devices:
        """Return them; see `devices_of`."""
        membership, sources = self._known.membership, self._known.catalog.sources
        seen = (membership.births, sources)
        if seen != self._seen:
            self._gateways = gateways_of(sources, membership.announced())
            self._seen = seen
        facts = self._known.facts
        if self._sent[0] != (seen, facts.version):
            self._sent = (seen, facts.version), devices_of(sources, self._gateways, facts)
        devices = self._sent[1]
        return devices if current is None else at_homes_of(devices, current)


def gateways_of(sources: Iterable[SourceDefinition], births: Iterable[Birth]) -> Gateways:
    """Return the gateways of devices whose name is the key of their rows.

    Args:
        sources: Of the catalog; those with another key than one TEXT are left out.
        births: The newest of every gateway.
    """
    keyed = _keyed(sources)
    gateways: dict[str, dict[str, str]] = {}
    left = MAX_DEVICES
    for birth in births:
        for announced in birth.current:
            source = keyed.get(announced.source.lower())
            if source is None:
                continue
            (key,) = source.key
            width = len(source.schema)
            rows = announced.rows[:left]
            left -= len(rows)
            names = [row[key] for row in rows if len(row) == width]
            found = gateways.setdefault(source.name.lower(), {})
            found.update({name: birth.gateway for name in names if isinstance(name, str)})
    return gateways


def devices_of(sources: Iterable[SourceDefinition], gateways: Gateways, facts: Facts) -> Devices:
    """Return the devices of gateways, and what they send.

    Args:
        sources: Of the catalog.
        gateways: Of the devices.
        facts: All there are.
    """
    keyed = _keyed(sources)
    sent = {name: row_bytes(keyed[name].schema) for name in gateways}
    return Devices(gateways, _bytes(sent, facts))


def at_homes_of(devices: Devices, current: FragmentBundle) -> Devices:
    """Return devices for a query that runs: its homes and trees stay as they are."""
    return replace(devices, homes=_homes(current), trees=trees_in(current))


def _keyed(sources: Iterable[SourceDefinition]) -> dict[str, SourceDefinition]:
    return {source.name.lower(): source for source in sources if _is_by_name(source)}


def _is_by_name(source: SourceDefinition) -> bool:
    return len(source.key) == 1 and source.schema.dtypes[source.key[0]] == DataType.TEXT


def _bytes(sent: Mapping[str, float], facts: Facts) -> dict[tuple[str, str], float]:
    """Return what one device sends a second, by source and gateway, from counted changes."""
    found = {}
    for name, width in sent.items():
        counted = {
            fact.subject.part: fact.value
            for fact in facts.about(SubjectKind.SOURCE, name, Quantity.SENSORS)
        }
        for fact in facts.about(SubjectKind.SOURCE, name, Quantity.CHANGES):
            devices = counted.get(fact.subject.part)
            if devices:
                found[name, fact.subject.part] = fact.value / devices * width
    return found


def _homes(bundle: FragmentBundle | None) -> dict[Met, tuple[tuple[str, int], ...]]:
    """Return the homes of joins, by what is joined there: several may be at the same gateways."""
    fragments = () if bundle is None else bundle.fragments
    senders = {f.id: f for f in fragments if f.homes and f.partition}
    found = {}
    for join in (node for f in fragments for node in walk_plan(f.plan) if isinstance(node, Join)):
        sides = [_sender(side, senders) for side in (join.left, join.right)]
        sent = [side for side in sides if side is not None]
        if len(sent) == len(sides):
            sources = sorted(keyed_by(side.plan, side.partition[0]) for side in sent)
            found[tuple(sources), sent[0].destinations] = sent[0].homes
    return found


def _sender(side: Plan, senders: Mapping[str, Fragment]) -> Fragment | None:
    """Return the fragment with homes that one side of a join comes from."""
    leaves = (node for node in walk_plan(side) if isinstance(node, RemoteSource))
    return next((senders[leaf.fragment] for leaf in leaves if leaf.fragment in senders), None)
