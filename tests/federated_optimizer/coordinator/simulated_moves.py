"""The simulator of sites with a coordinator's own queries, moves and readers, in simulated time.

Everything that the coordinator does with messages is the real thing; the network chooses by seed in
which order channels, reports and orders arrive, what comes twice, and which reports are lost.
"""

import asyncio
import contextlib
import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from federated_optimizer.coordinator.adaptation import moves
from federated_optimizer.coordinator.adaptation.moves import Move, Moves
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.queries import paced_requests, query_registry
from federated_optimizer.coordinator.queries.heard_reports import HeardReports
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.sites import flows
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.network.topology import Topology, colocation_of
from federated_optimizer.planning import plan
from stream_engine.simulation.network import CONSOLE, Faults, Flows, _Payload, _Request, _Will
from stream_engine.simulation.recorded_network import Disk, RecordedNetwork
from streamsql.binder import bind_query
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.errors import UnsupportedError
from streamsql.wire.codec import decode_packed
from streamsql.wire.fragments import Engine, FragmentBundle
from streamsql.wire.messages import DeltaBatch, FlowReport
from streamsql.wire.site_messages import SiteRole, SiteState
from tests.streamsql.from_text import catalog_of, query_of

CATALOG = catalog_of(
    "CREATE SOURCE seat (mid TEXT, rid TEXT, KEY (mid)) WITH (colocate = 'rid');"
    "CREATE SOURCE room (rid TEXT, status TEXT, KEY (rid)) WITH (colocate = 'rid');"
)
GATEWAYS = ("gw-1", "gw-2")
SITES = (*GATEWAYS, "base")
TOPOLOGY = Topology(
    gateways=dict.fromkeys(GATEWAYS, frozenset({"seat", "room"})),
    bases=("base",),
    colocation=colocation_of(CATALOG),
)
TEXT = "SELECT s.mid, r.status FROM seat s JOIN room r ON s.rid = r.rid"
ROOMS, SEATS = 2, 3
STATUSES = ("free", "taken")
FEEDER = "SELECT rid, status FROM room"
LOST_REPORTS = 0.2
REPEATED = 0.2
LATE = 0.9
TICK = 2_000
"""Microseconds on average from one thing that happens to the next."""


class SimulatedFederation(RecordedNetwork):
    """Sites, and a coordinator with one query that moves between two plans.

    A room goes through few statuses in rounds: a run that is behind has at times the same rows as
    one that is not. So statuses that the reader is told have to follow each other as they were
    said.

    Attributes:
        told: Up to where in the statuses of its room each seat's were told.
        view: What the reader has.
    """

    def __init__(
        self, seed: int, patch: pytest.MonkeyPatch, *, meeting: bool, fed: bool = False
    ) -> None:
        """Start the query.

        Args:
            seed: Of all that happens.
            patch: For the clocks.
            meeting: Whether there are plans by which rows of a gateway meet others at another
                gateway. When that one dies they leave the answer though their own gateway lives,
                and come again.
            fed: Whether another query has the rows of the plan that ships everything.
        """
        super().__init__(SITES, seed=seed, faults=Faults(repetition=REPEATED))
        for module in (moves, paced_requests, query_registry, flows):
            patch.setattr(module, "monotonic_clock", lambda: self.now)
        patch.setattr(moves, "REST_MICROSECONDS", 50 * TICK)
        patch.setattr(moves, "MOVE_MICROSECONDS", 2_000 * TICK)
        for name in ("seat", "room"):
            definition = CATALOG.find(name)
            assert isinstance(definition, SourceDefinition)
            for gateway in GATEWAYS:
                self.declare(gateway, definition.scan())
        self.rows: dict[str, dict[tuple[str, str], str]] = {g: {} for g in GATEWAYS}
        self.reports: dict[str, deque[dict[str, FlowReport]]] = {s: deque() for s in SITES}
        self.orders: dict[str, deque[Callable[[], None]]] = {s: deque() for s in SITES}
        self.said = self.messages = self.numbers = 0
        self.told: dict[str, int] = {}
        self.statuses: dict[str, list[str]] = {}
        self.room_of: dict[str, str] = {}
        self.view: Counter[Any] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.move: Move | None = None
        self._open(meeting=meeting, fed=fed)

    def _open(self, *, meeting: bool, fed: bool) -> None:
        self.membership = Membership()
        for site in SITES:
            self._hear(site, online=True)
        parts = SimpleNamespace(
            settings=CoordinatorSettings(database=""),
            deployment=self,
            membership=self.membership,
            clock=lambda: self.now,
            lock=asyncio.Lock(),
            rights=SimpleNamespace(),
            presence=SimpleNamespace(taken_over=False, check_in_charge=lambda: None),
            store=SimpleNamespace(next_query_number=self._next, put_query=lambda _query: None),
        )
        shared: Any = cast("Any", parts)
        planner: Any = SimpleNamespace(watch=lambda *_: None)
        self.queries = Queries(shared, planner)
        self.heard = HeardReports(shared, self.queries)
        self.moves = Moves(shared, self.queries)
        plans = [self._planned(number) for number in self._numbers()]
        self.plans = [p for p in plans if meeting or not _meets(p.bundle)]
        planned = self.plans[0]
        told: dict[str, Any] = {"origin": Origin.USER, "created": 0}
        if fed:
            bound = bind_query(query_of(FEEDER), CATALOG)
            feeder = Planned(plan(bound, TOPOLOGY, query="q0", text=FEEDER), ())
            self.queries.start(feeder, id="q0", text=FEEDER, name="q0", **told)
        self.query = self.queries.start(planned, id="q1", text=TEXT, name="q1", **told)
        self.query.result.follow(self._tell)

    def _next(self) -> int:
        self.numbers += 1
        return self.numbers + 1

    def _numbers(self) -> Iterator[int]:
        """Yield the numbers of all plans."""
        with contextlib.suppress(UnsupportedError):
            for number in itertools.count(1):
                self._planned(number)
                yield number

    def _planned(self, number: int) -> Planned:
        bound = bind_query(query_of(f"{TEXT} WITH (plan = {number})"), CATALOG)
        bundle = plan(bound, TOPOLOGY, query="q1", text=TEXT)
        return Planned(bundle, ())

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
        """Deliver the next message of some run: each has topics of its own, in their own order.

        Those of a run on trial, and of the one that feeds it, wait most often: it is behind.
        """
        queue = self._channels[sender, receiver]
        ahead = list(itertools.takewhile(lambda m: isinstance(m, _Payload), queue))
        runs = sorted({m.query for m in ahead if isinstance(m, _Payload)})
        late = {"q0", *(trial.run for trial in self.queries.runs.tried())}
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

    def _tell(self, delta: Delta) -> None:
        for row, weight in delta.items():
            self.view[row] += weight
            assert 0 <= self.view[row] <= 1, f"{row} is there {self.view[row]} times"
            if weight > 0:
                seat, status = map(str, row)
                left = self.statuses[self.room_of[seat]][self.told[seat] :]
                assert status in left, f"{row} is told again"
                self.told[seat] += left.index(status) + 1

    # --- what happens ----------------------------------------------------------------------------

    def read(self) -> None:
        """A room has the next status; before, all seats of a gateway come.

        A seat that comes later may meet an older status, as both come to the base by themselves.
        """
        gateway = self._random.choice([g for g in GATEWAYS if g in self.sites] or ["base"])
        if gateway == "base":
            return
        self.said += 1
        room = f"{gateway}-r{self._random.randrange(ROOMS)}"
        said = self.statuses.setdefault(room, [])
        if sum(source == "seat" for source, _key in self.rows[gateway]) < SEATS:
            source, row = "seat", (f"{gateway}-m{self.said}", room)
            self.room_of[row[0]], self.told[row[0]] = room, len(said)
        else:
            source, row = "room", (room, STATUSES[len(said) % len(STATUSES)])
            said.append(row[1])
        self.rows[gateway][source, row[0]] = row[1]
        self.ingest(gateway, source, [SourceEvent(row, self.now)])

    def die(self, site: str) -> None:
        """A site dies, and with it its disk."""
        self.kill(site, in_flight_survives=self._random.random() < 0.5)
        self.disks[site] = Disk()
        self.reports[site].clear()
        self.orders[site].clear()
        if site in GATEWAYS:
            self.rows[site].clear()

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
        if self.move is not None:
            self.moves.counts_came([self.move])

    async def begin(self) -> None:
        """Begin a move to the other plan."""
        current = self.query.bundle.alternative
        others = [p for p in self.plans if p.bundle.alternative != current]
        planned = self._random.choice(others)
        self.move = await self.moves.begin(planned, [self.query])

    def bundles(self, move: Move) -> tuple[FragmentBundle, ...]:
        """Return what a query leaves and what it moves to."""
        return (*move.former.values(), move.trial.bundle)

    async def look(self) -> None:
        """Go on with a move as the coordinator does four times a second."""
        self.queries.statuses.all()
        move = self.move
        if move is None:
            return
        moved = move.moved
        failed = ""
        if not moved:
            self.moves.watch(move)
            failed = self.moves.why_not(move)
        if failed:
            await self.moves.give_up(move)
            self.outcomes["given up"] += 1
            self.move = None
            return
        if not moved and self.moves.is_ready(move):
            moved = await self.moves.complete(move)
            self.outcomes["at rest"] += bool(moved)
        elif moved:
            self.outcomes["busy"] += 1
            self.outcomes["busy and fed"] += any(each.feeds for each in self.bundles(move))
        else:
            await self.moves.may_be_busy(move)
        if moved:
            self.move = None

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
        """Go on without faults until the query is settled."""
        for _ in range(200):
            self.advance(self.now + TICK)
            while any(self.orders.values()) or self.act(faulty=False):
                for site in SITES:
                    while self.orders[site]:
                        self.orders[site].popleft()()
            self._repair()
            for site in self.sites:
                self.report(site)
                while self.reports[site]:
                    self.hear_report(site, lossy=False)
            await self.look()
            if self.query.is_settled() and not any(self._channels.values()):
                return
        raise AssertionError(f"not settled: {self.query.info()}")

    def expected(self) -> Counter[Any]:
        """Return what DuckDB computes from the rows of all gateways."""
        with closing(duckdb.connect()) as connection:
            connection.execute("CREATE TABLE room (rid TEXT, status TEXT)")
            connection.execute("CREATE TABLE seat (mid TEXT, rid TEXT)")
            for rows in self.rows.values():
                for (source, key), value in rows.items():
                    connection.execute(f"INSERT INTO {source} VALUES (?, ?)", [key, value])
            return Counter(connection.execute(TEXT).fetchall())

    def check(self) -> None:
        """Check that the reader has what DuckDB computes."""
        expected = self.expected()
        lacking, wrong = expected - self.view, self.view - expected
        assert (lacking, wrong) == (Counter(), Counter()), self.query.info()
        assert self.query.result.rows() == tuple(sorted(expected))


def _meets(bundle: FragmentBundle) -> bool:
    at_gateways = {f.id for f in bundle.fragments if f.engine == Engine.GATEWAY}
    return any(fragment.consumer in at_gateways for fragment in bundle.fragments)
