"""Client, catalog, membership and clock that all parts of a coordinator share."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from federated_optimizer.coordinator.contract.audit_model import AuditEntry
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.planning_processes import Beside
from federated_optimizer.coordinator.rights.account_quotas import AccountQuotas
from federated_optimizer.coordinator.rights.reading_rights import ReadingRights
from federated_optimizer.coordinator.sites.broker_figures import BrokerFigures
from federated_optimizer.coordinator.sites.deployment import Deployment
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.coordinator.sites.published_links import LinkTable
from federated_optimizer.coordinator.sites.site_presence import Presence
from federated_optimizer.coordinator.store.audit_log import AuditLog
from federated_optimizer.coordinator.store.audit_store import stored_audit
from federated_optimizer.coordinator.store.catalog_store import CatalogStore, Stored, open_catalog
from federated_optimizer.coordinator.store.enrolment_store import stored_enrolments
from federated_optimizer.coordinator.store.grant_store import StoredRights, stored_rights
from federated_optimizer.coordinator.store.plan_decisions import Decision, Decisions
from federated_optimizer.coordinator.store.stored_decisions import stored_decisions
from federated_optimizer.coordinator.store.stored_facts import stored_facts
from federated_optimizer.statistics.fact import Fact
from federated_optimizer.statistics.fact_store import Facts
from host.clocks import Clock
from host.mqtt import MessageClient, Will
from streamsql.catalog.catalog import Catalog
from streamsql.errors import DeploymentError
from streamsql.wire.site_messages import SiteRole
from streamsql.wire.topics import Topics

ClientFactory = Callable[[Will], MessageClient]
_Opened = tuple[
    CatalogStore,
    Stored,
    tuple[AuditEntry, ...],
    StoredRights,
    tuple[Fact, ...],
    tuple[Decision, ...],
]


@dataclass(frozen=True, slots=True)
class SharedParts:
    """The catalog, the sites, and the way to both.

    Attributes:
        clock: Wall-clock microseconds.
        beside: Where statements are bound and planned, and expressions of users evaluated.
        store: The catalog on disk.
        catalog: The catalog in memory: all definitions.
        audit: Who did what when.
        rights: Who may read what.
        quotas: How much accounts may use.
        presence: Whether this coordinator is in charge, and since which epoch.
        deployment: Tells sites what to do.
        facts: What has been measured of sources, tables, predicates, recursions and engines.
        decisions: What was decided on plans of running queries.
        broker: What the broker says of itself.
        lock: Held by whoever changes queries or definitions; see `changing`.
    """

    settings: CoordinatorSettings
    clock: Clock
    beside: Beside
    store: CatalogStore
    catalog: Catalog
    audit: AuditLog
    rights: ReadingRights
    quotas: AccountQuotas
    presence: Presence
    client: MessageClient
    topics: Topics
    deployment: Deployment
    membership: Membership
    links: LinkTable
    facts: Facts
    decisions: Decisions
    broker: BrokerFigures = field(default_factory=BrokerFigures)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Hold the lock while we are in charge of the federation.

        Raises:
            DeploymentError: Another coordinator has taken over; nothing may be written any more.
        """
        async with self.lock:
            self.presence.check_in_charge()  # here: it may have come while we waited
            yield

    def catalog_of(self, principal: Principal) -> Catalog:
        """Return the catalog as somebody may read it."""
        return self.catalog.behind(self.rights.gate(principal))

    @property
    def expected_sites(self) -> dict[str, SiteRole]:
        """The sites that the settings name, whether or not they have reported."""
        bases = dict.fromkeys(self.settings.bases, SiteRole.BASE)
        return {**bases, self.settings.static: SiteRole.STATIC}


async def open_shared_parts(
    settings: CoordinatorSettings, client: ClientFactory, clock: Clock, beside: Beside
) -> tuple[SharedParts, Stored]:
    """Take the catalog over; the client is not connected yet.

    Raises:
        DeploymentError: The catalog cannot be used.
    """
    store, found, audited, rights, known, decided = await asyncio.to_thread(
        _opened, settings.database, clock()
    )
    catalog = found.catalog()
    presence = Presence(settings, clock, found.epoch)
    messages, topics = client(presence.will()), Topics(settings.site)
    deployment = Deployment(messages, topics, settings.host)
    shared = SharedParts(
        settings,
        clock,
        beside,
        store,
        catalog,
        AuditLog(store, clock, audited),
        ReadingRights(catalog, rights),
        AccountQuotas(rights),
        presence,
        messages,
        topics,
        deployment,
        Membership(),
        LinkTable(),
        Facts(known),
        Decisions(store, decided),
    )
    return shared, found


def _opened(url: str, now: int) -> _Opened:
    store, found = open_catalog(url, now)
    try:
        found = replace(found, enrolments=stored_enrolments(store))
        known = stored_facts(store), stored_decisions(store, Decision)
        return store, found, stored_audit(store), stored_rights(store), *known
    except DeploymentError:
        store.close()
        raise
