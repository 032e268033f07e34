"""Settings of the coordinator; the console that runs it fills them in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from federated_optimizer.coordinator.contract.sink_endpoints import SinkEndpoint
from federated_optimizer.sharing.strategy import Materialize, Strategy
from streamsql.algebra.metrics import BY_BYTES, Metric
from streamsql.catalog.open_folders import OpenFolders
from streamsql.catalog.refresh_times import zone_of
from streamsql.errors import DeploymentError
from streamsql.wire.topics import check_id


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """Details that gateways are given when they join.

    Attributes:
        authority: Folder of the federation's authority, or empty.
        broker: Address of the broker as gateways reach it.
        broker_ca: Authority of the broker's certificate, with `mqtts`; empty: that of the
            federation, and the system's where there is none.
    """

    authority: str = ""
    broker: str = ""
    broker_ca: str = ""


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """Settings of the coordinator; times in seconds.

    Attributes:
        site: The federation, first level of every topic.
        host: The coordinator's own id.
        database: SQLAlchemy URL of the catalog: SQLite file or PostgreSQL.
        bases: Base sites expected to exist; others that announce themselves are used as well.
        only_bases: Whether they are not: no other site may be one.
        static: The static engine's id.
        grace: How long an offline site's links are still shown.
        session_grace: How long a session query outlives its last reader.
        unread: How long a session query waits for its first reader.
        switch: Longest time the old rows stay in view while a redeployed query settles.
        regroup: How long to wait for more gateways before redeploying.
        adapt: Least time between two changes of a query's plan because of changed facts; 0: plans
            stay as they are while sites and definitions do.
        patience: How long a gateway may be away before recursions and joins that gateways compute
            together do without it.
        max_result_rows: A query with more different rows in its result is stopped.
        max_queries: Running queries at most.
        base_seconds: How long reading the base rows for a question about rows may take.
        max_base_rows: Base rows that such a question may read.
        max_behind: Changes that may wait for a reader before it gets a snapshot instead.
        time_zone: Of the times of day of REFRESH AT, by its IANA name.
        metric: By which plans of queries are compared that say nothing.
        heuristics: Whether these leave plans out that seldom pay.
        sharing: The parts of new queries that are looked for among what runs.
        materialize: When a part of a query becomes a node that others can read.
        base_gateway: The gateway next to which base sites are, so that ways to them are counted in
            links, too; empty: a hop from each gateway.
        folders: Whose files tables may name, where the coordinator knows it; the static engine
            checks it in any case, when it opens them.
        endpoints: Receivers that sinks may name.
        fleet: What gateways are given when they join.
    """

    site: str = "demo"
    host: str = "coordinator"
    database: str = "sqlite:///catalog.db"
    bases: tuple[str, ...] = ("base",)
    only_bases: bool = False
    static: str = "static"
    grace: float = 5.0
    session_grace: float = 3.0
    unread: float = 30.0
    switch: float = 5.0
    regroup: float = 0.3
    adapt: float = 60.0
    patience: float = 15.0
    max_result_rows: int = 200_000
    max_queries: int = 20_000
    base_seconds: float = 20.0
    max_base_rows: int = 100_000
    max_behind: int = 50_000
    time_zone: str = "UTC"
    metric: Metric = BY_BYTES
    heuristics: bool = True
    sharing: Strategy = Strategy.ALL
    materialize: Materialize = Materialize.WANTED_TWICE
    base_gateway: str = ""
    folders: OpenFolders | None = None
    endpoints: Mapping[str, SinkEndpoint] = field(default_factory=dict)
    fleet: FleetSettings = FleetSettings()

    def __post_init__(self) -> None:
        """Refuse ids that cannot be topic levels."""
        for site in (self.site, self.host, self.static, *self.bases):
            check_id(site, "site")
        if not self.bases:
            raise DeploymentError("the coordinator needs the name of at least one base site")
        try:
            zone_of(self.time_zone)
        except ValueError as error:
            raise DeploymentError(
                f"setting time_zone: {error}", hint="write for example UTC or Europe/Berlin"
            ) from None

    @property
    def beside(self) -> tuple[tuple[str, str], ...]:
        """Base sites, each with the gateway next to it, if it is known."""
        return tuple((base, self.base_gateway) for base in self.bases if self.base_gateway)
