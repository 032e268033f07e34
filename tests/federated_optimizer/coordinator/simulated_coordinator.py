"""The simulator of sites with a coordinator's own queries and readers, in simulated time.

Everything that the coordinator does with messages is the real thing; the network chooses by seed in
which order channels, reports and orders arrive, what comes twice, and which reports are lost.
"""

import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence

import pytest

from federated_optimizer.coordinator.queries import paced_requests, query_registry
from federated_optimizer.coordinator.queries.heard_reports import HeardReports
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.sites import flows
from federated_optimizer.coordinator.sites.federation_membership import Membership
from stream_engine.simulation.network import CONSOLE, Faults, Flows, _Payload, _Request, _Will
from stream_engine.simulation.recorded_network import Disk, RecordedNetwork
from streamsql.wire.codec import decode_packed
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch, FlowReport
from streamsql.wire.site_messages import SiteRole, SiteState

LOST_REPORTS = 0.2
REPEATED = 0.2
LATE = 0.9
TICK = 2_000
"""Microseconds on average from one thing that happens to the next."""


class SimulatedCoordinator(RecordedNetwork, ABC):
    """Sites, and what a coordinator says to them and hears of them, each a while later.

    Whoever makes one gives it `queries` and `heard`.

    Attributes:
        membership: Of the sites.
        reports: By site: counts that are on their way.
        orders: By site: what the coordinator has told it, likewise.
    """

    queries: Queries
    heard: HeardReports

    def __init__(self, sites: Sequence[str], seed: int, patch: pytest.MonkeyPatch) -> None:
        """Start the sites.

        Args:
            sites: Their ids.
            seed: Of all that happens.
            patch: For the clocks.
        """
        super().__init__(sites, seed=seed, faults=Faults(repetition=REPEATED))
        for module in (paced_requests, query_registry, flows):
            patch.setattr(module, "monotonic_clock", lambda: self.now)
        self.membership = Membership()
        self.reports: dict[str, deque[dict[str, FlowReport]]] = {s: deque() for s in sites}
        self.orders: dict[str, deque[Callable[[], None]]] = {s: deque() for s in sites}
        self.messages = 0

    def runs_that_wait(self) -> set[str]:
        """Return the runs whose messages wait most often."""
        return set()

    @abstractmethod
    async def look(self) -> None:
        """Do what the coordinator does four times a second."""

    @abstractmethod
    def is_settled(self) -> bool:
        """Return whether all answers are there."""

    # --- what the coordinator asks of sites: it arrives some time later --------------------------

    def publish(self, bundle: FragmentBundle, previous: object = None) -> None:  # noqa: ARG002
        self._bundles[bundle.query] = bundle
        for site in sorted(bundle.sites & self.sites.keys()):
            self.orders[site].append(lambda s=site, b=bundle: self._installed(s, b))  # type: ignore[misc]

    def _installed(self, site: str, bundle: FragmentBundle) -> None:
        if self._bundles.get(bundle.query) is bundle:
            self.install(bundle, at=[site])

    def withdraw(self, bundle: FragmentBundle) -> None:
        self._bundles.pop(bundle.query, None)
        for site in sorted(bundle.sites & self.sites.keys()):
            self.withdraw_from(bundle.query, site)

    def withdraw_from(self, run: str, site: str) -> None:
        def stop() -> None:
            if run not in self._bundles:
                self.sites[site].uninstall(run)
                self._to_step[site] = None

        if site in self.sites:
            self.orders[site].append(stop)

    def clear_problem(self, run: str, site: str) -> None:
        """Nobody has problems here."""

    def request_result(self, run: str, site: str) -> None:
        self._send(CONSOLE, site, _Request(run, CONSOLE))

    # --- what arrives at the coordinator ---------------------------------------------------------

    def _show(self, sender: str, message: object) -> None:
        match message:
            case _Payload(query, payload):
                self.heard.output(query, sender, decode_packed(payload, DeltaBatch))
            case _Will(epoch):
                self._hear(sender, online=False, epoch=epoch)
            case _:
                raise AssertionError("nobody asks the coordinator")

    def _hear(self, site: str, *, online: bool, epoch: int = 0) -> None:
        role = SiteRole.BASE if site == "base" else SiteRole.GATEWAY
        before, epoch = self.membership.epoch(site), epoch or self._epochs[site]
        state = SiteState(online=online, epoch=epoch, ts=self.now, role=role)
        if not self.membership.hear_state(site, state, self.now) or before < 0:
            return
        if before < epoch:
            self.queries.site_restarted(site)
        if before < epoch or not online:
            self.queries.site_left(site)
        self.queries.statuses.all()

    def _deliver(self, sender: str, receiver: str, *, faulty: bool) -> None:
        """Deliver the next message of some run: each has topics of its own, in their own order."""
        queue = self._channels[sender, receiver]
        ahead = list(itertools.takewhile(lambda m: isinstance(m, _Payload), queue))
        runs = sorted({m.query for m in ahead if isinstance(m, _Payload)})
        late = self.runs_that_wait()
        others = [run for run in runs if run not in late]
        if others and self._random.random() < LATE:
            runs = others
        if runs:
            run = self._random.choice(runs)
            message = next(m for m in ahead if isinstance(m, _Payload) and m.query == run)
            queue.remove(message)
            queue.appendleft(message)
        super()._deliver(sender, receiver, faulty=faulty)

    def _behind(self, query: str, bundle: FragmentBundle, receiver: str, flows: Flows) -> list[str]:
        if receiver != CONSOLE:
            return super()._behind(query, bundle, receiver, flows)
        self.queries.request_missing()
        return []

    # --- what happens ----------------------------------------------------------------------------

    def die(self, site: str) -> None:
        """A site dies, and with it its disk."""
        self.kill(site, in_flight_survives=self._random.random() < 0.5)
        self.disks[site] = Disk()
        self.reports[site].clear()
        self.orders[site].clear()

    def killed(self, site: str) -> None:
        """A process is killed, and goes on from its disk before anybody holds it for dead."""
        if self._random.random() < 0.5:
            self.save(site)
        self.reports[site].clear()
        self.orders[site].clear()
        self.crash(site, in_flight_survives=self._random.random() < 0.5)
        self._hear(site, online=True)

    def live(self, site: str) -> None:
        self.restart(site)
        self._hear(site, online=True)

    def report(self, site: str) -> None:
        """A site counts all its runs in one message."""
        engine = self.sites[site]
        found = {run: engine.flow(run) for run in engine.queries}
        self.reports[site].append({run: flow for run, flow in found.items() if flow is not None})

    def hear_report(self, site: str, *, lossy: bool) -> None:
        reports = self.reports[site].popleft()
        if lossy and self._random.random() < LOST_REPORTS:
            return
        self.messages += 1
        for run, report in reports.items():
            self.heard.flow(run, site, report, self.messages)
        self.heard_counts()

    def heard_counts(self) -> None:
        """Do what has to be done after a report."""

    async def something(self, *, lossy: bool = True) -> bool:
        """Let one thing happen, chosen at random; return whether there was one."""
        self.now += self._random.randrange(2 * TICK)
        kinds: list[str] = ["act"] * 4
        kinds += ["report"] * bool(self.sites)
        kinds += ["hear"] * 2 * any(self.reports.values()) + ["order"] * any(self.orders.values())
        match self._random.choice(kinds):
            case "act":
                self.advance(self.now)
                return self.act(faulty=lossy)
            case "report":
                self.report(self._random.choice(sorted(self.sites)))
            case "hear":
                sites = sorted(site for site, waiting in self.reports.items() if waiting)
                self.hear_report(self._random.choice(sites), lossy=lossy)
            case "order":
                site = self._random.choice(sorted(s for s, orders in self.orders.items() if orders))
                self.orders[site].popleft()()
            case _:
                raise AssertionError("nothing else happens")
        return True

    async def rest(self) -> None:
        """Go on without faults until all is settled."""
        for _ in range(200):
            self.advance(self.now + TICK)
            while any(self.orders.values()) or self.act(faulty=False):
                for site in self.orders:
                    while self.orders[site]:
                        self.orders[site].popleft()()
            self._repair()
            for site in self.sites:
                self.report(site)
                while self.reports[site]:
                    self.hear_report(site, lossy=False)
            await self.look()
            under_way = (*self._channels.values(), *self.orders.values())
            if self.is_settled() and not any(under_way):
                return
        raise AssertionError(f"not settled: {[q.info() for q in self.queries.everything()]}")
