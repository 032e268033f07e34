"""Retained messages of the coordinator: its state, the tables and the settings of sites."""

import logging

from federated_optimizer.coordinator.coordinator_core import Core
from federated_optimizer.coordinator.queries.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.system.site_settings_changes import SettingsBook
from host.mqtt import MessagingError

log = logging.getLogger(__name__)


class Announcer:
    """Tells the broker what it should know, whenever there is room in the message queue."""

    def __init__(
        self, core: Core, planner: Planner, queries: Queries, site_settings: SettingsBook
    ) -> None:
        self._core = core
        self._planner = planner
        self._queries = queries
        self._site_settings = site_settings
        self._owes_greeting = False

    def connected(self) -> None:
        """Report everything to a broker that may have lost it, as far as there is room at once."""
        self._owes_greeting = True
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
        self._queries.publish_owed()

    def say_online(self) -> None:
        """Say that we are there."""
        self._core.deployment.state(self._core.presence.state(online=True))

    def tables(self) -> None:
        """Tell the static engine which tables and refreshed views there are."""
        stored, refreshed = self._planner.tables(self._core.settings.time_zone)
        self._core.deployment.tables(stored, refreshed, self._core.settings.static)
