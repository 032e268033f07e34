"""Devices by the keys of the rows that gateways have announced in their births."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.costs.estimates import row_bytes
from federated_optimizer.statistics.fact import Quantity, SubjectKind
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.planning_statistics import Devices
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.site_messages import Birth

MAX_DEVICES = 20_000
"""Of all sources, that are looked at."""


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


def announced_devices(known: Known, current: FragmentBundle | None) -> Devices:
    """Return the devices that gateways have announced; see `devices_of`."""
    births = known.membership.announced()
    return devices_of(known.catalog.sources, births, known.facts, current)


def devices_of(
    sources: Iterable[SourceDefinition],
    births: Iterable[Birth],
    facts: Facts,
    current: FragmentBundle | None = None,
) -> Devices:
    """Return the gateways of devices whose name is the key of their rows, and what they send.

    Args:
        sources: Of the catalog; those with another key than one TEXT are left out.
        births: The newest of every gateway.
        facts: All there are.
        current: What the query to be planned runs now: its homes stay.
    """
    keyed = {s.name.lower(): s for s in sources if _is_by_name(s)}
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
    sent = {name: row_bytes(keyed[name].schema) for name in gateways}
    return Devices(gateways, _bytes(sent, facts), _homes(current))


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


def _homes(
    bundle: FragmentBundle | None,
) -> dict[tuple[str, ...], tuple[tuple[str, int], ...]]:
    fragments = () if bundle is None else bundle.fragments
    return {f.destinations: f.homes for f in fragments if f.homes and f.partition}
