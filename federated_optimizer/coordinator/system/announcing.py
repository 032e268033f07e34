"""Retained messages of the coordinator: its state, tables, declared sources, sites' settings."""

import logging

from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.planning.refreshed_tables import stored_tables
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.system.site_settings_changes import SettingsBook
from federated_optimizer.coordinator.system.source_publisher import SourcePublisher
from host.mqtt import MessagingError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.wire.messages import KeptSource

log = logging.getLogger(__name__)


class Announcer:
    """Tells the broker what it should know, whenever there is room in the message queue."""

    def __init__(
        self,
        shared: SharedParts,
        planner: Planner,
        queries: Queries,
        site_settings: SettingsBook,
        declared: SourcePublisher,
    ) -> None:
        self._shared = shared
        self._planner = planner
        self._queries = queries
        self._site_settings = site_settings
        self._declared = declared
        self._owes_greeting = False

    def connected(self) -> None:
        """Report everything to a broker that may have lost it, as far as there is room at once."""
        self._owes_greeting = True
        self._declared.connected()
        try:
            self.go_on()
        except MessagingError as error:
            log.warning("some announcements to the broker are still pending: %s", error.message)

    def go_on(self) -> None:
        """Tell what is still owed.

        Raises:
            MessagingError: The message queue is full; the rest follows with the next call.
        """
        if self._owes_greeting:
            self.say_online()
            self.tables()
            self._site_settings.publish()
            self._owes_greeting = False
        self._declared.publish_owed()  # before the queries that read them
        self._queries.owed.publish()

    def say_online(self) -> None:
        """Say that we are there."""
        self._shared.deployment.state(self._shared.presence.state(online=True))

    def tables(self) -> None:
        """Tell the static engine which tables and refreshed views there are, and what is kept."""
        stored, refreshed = stored_tables(
            self._shared, self._planner.topology(), self._shared.settings.time_zone
        )
        kept = tuple(map(kept_source, self._shared.catalog.sources))
        self._shared.deployment.tables(stored, refreshed, kept, self._shared.settings.static)


def kept_source(definition: SourceDefinition) -> KeptSource:
    """Return what a source says of its readings in the lake."""
    return KeptSource(
        definition.name,
        definition.option("keep") or "",
        definition.option("rollup") or "",
        tuple(definition.schema.names[position] for position in definition.key),
    )
