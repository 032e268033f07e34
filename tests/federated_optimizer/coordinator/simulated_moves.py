"""A coordinator with a query that moves between two plans, over the simulator of sites."""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from federated_optimizer.coordinator.adaptation import begun_moves, moves
from federated_optimizer.coordinator.adaptation.begun_moves import Move
from federated_optimizer.coordinator.adaptation.moves import Moves
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.queries.heard_reports import HeardReports
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.network.topology import Topology, colocation_of
from federated_optimizer.planning import plan
from streamsql.binder import bind_query
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.errors import UnsupportedError
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.federated_optimizer.coordinator.simulated_coordinator import TICK, SimulatedCoordinator
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


class SimulatedFederation(SimulatedCoordinator):
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
        super().__init__(SITES, seed, patch)
        for module in (moves, begun_moves):
            patch.setattr(module, "monotonic_clock", lambda: self.now)
        patch.setattr(moves, "REST_MICROSECONDS", 50 * TICK)
        patch.setattr(moves, "MOVE_MICROSECONDS", 2_000 * TICK)
        for name in ("seat", "room"):
            definition = CATALOG.find(name)
            assert isinstance(definition, SourceDefinition)
            for gateway in GATEWAYS:
                self.declare(gateway, definition.scan())
        self.rows: dict[str, dict[tuple[str, str], str]] = {g: {} for g in GATEWAYS}
        self.said = self.numbers = 0
        self.told: dict[str, int] = {}
        self.statuses: dict[str, list[str]] = {}
        self.room_of: dict[str, str] = {}
        self.view: Counter[Any] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.move: Move | None = None
        self._open(meeting=meeting, fed=fed)

    def _open(self, *, meeting: bool, fed: bool) -> None:
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
            store=SimpleNamespace(next_query_number=self._next, put_runs=lambda _changes: None),
        )
        shared: Any = cast("Any", parts)
        shared.changing = lambda: SharedParts.changing(shared)
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

    def runs_that_wait(self) -> set[str]:
        # A run on trial is behind, and so is what feeds it.
        return {"q0", *(trial.run for trial in self.queries.runs.tried())}

    def heard_counts(self) -> None:
        if self.move is not None:
            self.moves.counts_came([self.move])

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
        super().die(site)
        if site in GATEWAYS:
            self.rows[site].clear()

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

    def is_settled(self) -> bool:
        return self.query.is_settled()

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
