"""Periodic work of a coordinator: it places queries and asks for what is missing."""

import asyncio
import logging

from federated_optimizer.coordinator.facts.heard_facts import HeardFacts
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.repairs import Repairs
from federated_optimizer.coordinator.queries.replanning import Replanning
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.system.announcing import Announcer
from federated_optimizer.coordinator.system.host_reports import HostReports
from federated_optimizer.coordinator.system.observation_interest import ObservationInterest
from host.clocks import monotonic_clock

log = logging.getLogger(__name__)


class Upkeep:
    """Looks after the queries of one coordinator."""

    def __init__(  # noqa: PLR0913, PLR0917 - each is one seam
        self,
        shared: SharedParts,
        queries: Queries,
        replanning: Replanning,
        announcer: Announcer,
        reports: HostReports,
        repairs: Repairs,
        heard: HeardFacts,
    ) -> None:
        self._shared = shared
        self._queries = queries
        self._replanning = replanning
        self._announcer = announcer
        self._reports = reports
        self._repairs = repairs
        self._heard = heard
        self._interest = ObservationInterest(shared)
        self._stood: tuple[int, int] | None = None

    def sites_changed(self) -> None:
        """Place queries anew after something happened to a site."""
        self._replanning.look()
        self._queries.compare(self._shared.catalog)
        # Each site tells its figures every few seconds, which says nothing new of any query.
        membership = self._shared.membership
        stands = (membership.births, membership.moves)
        if stands != self._stood:
            self._stood = stands
            self._queries.statuses.all()

    async def look(self) -> None:
        """Do what is due.

        Raises:
            MessagingError: The message queue is full; the rest follows with the next call.
        """
        self._queries.compare(self._shared.catalog)  # some report may be late by now
        await self._refresh()
        self._replanning.look()  # a gateway may have been away for too long by now
        if not self._shared.client.connected:
            return
        for site in self._shared.membership.give_up(monotonic_clock(), self._shared.clock()):
            log.warning("site %s has not reported since the broker was offline", site)
            self._queries.site_left(site)
            self.sites_changed()
        self._announcer.go_on()
        self._learn()
        runs = self._queries.runs
        self._reports.look(bool(runs.reads.reports), runs.everyone, monotonic_clock())
        self._interest.look(runs.leaders(runs.reads.observations))
        self._queries.request_missing()
        self._repairs.look(self._queries.statuses.restless(), monotonic_clock())
        await self._queries.offers.catch_up()  # before a statement needs them

    async def _refresh(self) -> None:
        """Refresh statuses, with other work between them."""
        self._queries.statuses.begin_look()
        has_more = self._queries.statuses.go_on()
        while has_more:
            await asyncio.sleep(0)
            has_more = self._queries.statuses.go_on()

    def _learn(self) -> None:
        shared = self._shared
        times = {"now": shared.clock(), "moment": monotonic_clock()}
        self._heard.look(self._queries.runs.leaders(), shared.links, **times)
