"""Settings of the console: one JSON file, read once at the start."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from federated_optimizer.coordinator.contract.coordinator_settings import FleetSettings
from federated_optimizer.sharing.strategy import Materialize, Strategy
from host.files.settings_file import VARIABLES, check_port, read_settings
from host.mqtt.broker_address import parse_address
from streamsql.algebra.metrics import METRIC_HINT, Metric, metric_of
from streamsql.catalog.open_folders import OpenFolders
from streamsql.errors import DeploymentError
from ui.console_names import host_name
from ui.provider_settings import ProviderSettings


class ConsoleSettings(msgspec.Struct, frozen=True):
    """Everything the console process needs to know.

    Attributes:
        host: Address to listen on.
        port: TCP port.
        allowed_hosts: Names, with commas, by which browsers may ask besides localhost and `host`.
        trusted_proxy: Addresses or networks, with commas, of reverse proxies that speak TLS with
            people; what they say of a client's address and scheme is believed.
        oidc: OpenID Connect provider at which people sign in, or None.
        session_idle_hours: Without any request, after which a session ends.
        session_hours: After which a session ends in any case.
        max_connections: HTTP connections at once, event streams included.
        max_connections_per_address: Of them from one address.
        request_seconds: Within which a request has to come in, headers and body.
        statement_seconds: That binding and planning one statement may take.
        site: The federation, first level of every topic.
        broker: mqtt://[user:password@]host:port
        broker_ca: Authority of the broker's certificate, with `mqtts`; empty for the system's.
        broker_cert: Our certificate, with `mqtts`.
        broker_key: Its private key, with `mqtts`; empty when `broker_cert` holds both.
        broker_password_file: File whose first line is the password at the broker; empty: that of
            `broker`. The user is the one in `broker`, or this service's id.
        tls_cert: Certificate chain of the console in PEM form; empty: it speaks HTTP.
        tls_key: Its private key; empty when `tls_cert` holds both.
        base_sites: Sites that may act as base sites; none named: each that says so.
        authority: Folder of the federation's certificate authority (`pando ca init`), or empty.
        gateway_broker: Address of the broker as gateways on other machines reach it; empty: that
            of `broker`.
        gateway_broker_ca: Authority of the broker's certificate that gateways are given, with
            `mqtts`; empty: `broker_ca`, or the federation's.
        data_dir: For the catalog (unless `catalog_url` is given) and the epoch.
        catalog_url: SQLAlchemy URL; empty is SQLite in the data directory.
        site_file: The map as GeoJSON; empty for none.
        schema_file: CREATE statements that are applied when their names are unknown; or empty.
        layers: "building" or "trace": which of the map's standing queries to install.
        grace_seconds: How long an offline site's rows stay.
        adapt_seconds: Least time between two changes of a query's plan for changed facts; 0: none.
        functions: Python modules with functions of the user that may run here, with commas.
        time_zone: Of the times of day of REFRESH AT, by its IANA name such as Europe/Berlin.
        metric: By what plans of queries are compared that say nothing, such as latency, or with
            weights: bytes 1, messages 50.
        heuristics: Whether plans are left out that seldom pay, of queries that say nothing.
        sharing: The parts of new queries that are looked for among what runs.
        materialize: When a part of a query becomes a node that others can read.
        base_gateway: Id of the gateway next to which base sites are; empty: nobody knows.
        base_dir: Where relative paths of tables start at the static engine; empty where that is
            not known here, and then only the static engine checks the files that tables name.
        table_folders: As the static engine's.
        closed_folders: As the static engine's.
        endpoints: Receivers that sinks name, with address and secret, by name.
        metrics_port: Where `/metrics` and `/health` are also served, without accounts; 0: nowhere.
        metrics_host: Address to serve them on.
        lake: Where the lake is, as the static engine's, for trials on history; None: nowhere.
    """

    broker: str
    data_dir: str
    host: str = "127.0.0.1"
    port: int = 8420
    allowed_hosts: str = ""
    trusted_proxy: str = ""
    oidc: ProviderSettings | None = None
    session_idle_hours: float = 12.0
    session_hours: float = 168.0
    max_connections: int = 500
    max_connections_per_address: int = 250
    request_seconds: float = 20.0
    statement_seconds: float = 10.0
    site: str = "demo"
    catalog_url: str = ""
    site_file: str = ""
    schema_file: str = ""
    layers: str = "building"
    grace_seconds: float = 5.0
    adapt_seconds: float = 60.0
    functions: str = ""
    time_zone: str = "UTC"
    metric: str = "bytes"
    heuristics: bool = True
    sharing: Strategy = Strategy.ALL
    materialize: Materialize = Materialize.WANTED_TWICE
    base_gateway: str = ""
    broker_ca: str = ""
    broker_cert: str = ""
    broker_key: str = ""
    broker_password_file: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    authority: str = ""
    base_sites: tuple[str, ...] = ()
    gateway_broker: str = ""
    gateway_broker_ca: str = ""
    base_dir: str = ""
    table_folders: tuple[str, ...] = ()
    closed_folders: tuple[str, ...] = ()
    endpoints: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    metrics_port: int = 0
    metrics_host: str = "127.0.0.1"
    lake: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        check_port(self.metrics_port, "metrics_port")
        if not 0 <= self.adapt_seconds <= 86_400:
            raise DeploymentError(
                f"setting adapt_seconds is {self.adapt_seconds}; it must be between 0 and 86400"
            )
        for name in ("max_connections", "max_connections_per_address"):
            if getattr(self, name) < 1:
                raise DeploymentError(f"setting {name} must be at least 1")
        for name in ("session_idle_hours", "session_hours"):
            if not 0 < getattr(self, name) <= 8760:
                raise DeploymentError(
                    f"setting {name} is {getattr(self, name)}; it must be between 0 and 8760"
                )
        for name in ("request_seconds", "statement_seconds"):
            if not 0 < getattr(self, name) <= 3600:
                raise DeploymentError(
                    f"setting {name} is {getattr(self, name)}; it must be between 0 and 3600"
                )

    @property
    def fleet(self) -> FleetSettings:
        """Details that gateways are given when they join.

        Raises:
            DeploymentError: The broker's address is malformed.
        """
        broker = self.gateway_broker
        if not broker:
            try:
                broker = str(parse_address(self.broker))
            except ValueError as error:
                raise DeploymentError(f"setting broker: {error}") from error
        return FleetSettings(self.authority, broker, self.gateway_broker_ca or self.broker_ca)

    @property
    def folders(self) -> OpenFolders | None:
        """Whose files tables may name, if it is known here."""
        if not self.base_dir:
            return None
        return OpenFolders(self.base_dir, self.table_folders, self.closed_folders)

    @property
    def database(self) -> str:
        """SQLAlchemy URL of the catalog."""
        return self.catalog_url or f"sqlite:///{Path(self.data_dir).resolve() / 'catalog.db'}"

    @property
    def plan_metric(self) -> Metric:
        """By what plans of queries are compared that say nothing.

        Raises:
            DeploymentError: The setting is no metric.
        """
        try:
            return metric_of(self.metric)
        except ValueError as error:
            raise DeploymentError(f"setting metric: {error}", hint=METRIC_HINT) from None

    @property
    def owner_file(self) -> Path:
        """File with the secret that admits whoever may read the data directory."""
        return Path(self.data_dir) / "owner"

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names in `allowed_hosts`.

        Raises:
            DeploymentError: One is no name of a host.
        """
        names = tuple(filter(None, (name.strip() for name in self.allowed_hosts.split(","))))
        for name in names:
            if not host_name(name):
                raise DeploymentError(
                    f"setting allowed_hosts names {name!r:.80}",
                    hint="write names or addresses of hosts, separated by commas, without http://",
                )
        return names


_VARIABLES = {
    **VARIABLES,
    "PANDO_CATALOG_URL": "catalog_url",
    "PANDO_HOST": "host",
    "PANDO_ALLOWED_HOSTS": "allowed_hosts",
    "PANDO_TLS_CERT": "tls_cert",
    "PANDO_TLS_KEY": "tls_key",
    "PANDO_AUTHORITY": "authority",
    "PANDO_GATEWAY_BROKER": "gateway_broker",
    "PANDO_GATEWAY_BROKER_CA": "gateway_broker_ca",
    "PANDO_TRUSTED_PROXY": "trusted_proxy",
    "PANDO_TIME_ZONE": "time_zone",
    "PANDO_METRIC": "metric",
    "PANDO_HEURISTICS": "heuristics",
    "PANDO_SHARING": "sharing",
    "PANDO_MATERIALIZE": "materialize",
}


def load_settings(path: Path, environ: Mapping[str, str] = os.environ) -> ConsoleSettings:
    """Read settings from a JSON file; PANDO_BROKER, PANDO_CATALOG_URL, … override it.

    Raises:
        DeploymentError: The file is missing or wrong; says where.
    """
    return read_settings(path, ConsoleSettings, environ, _VARIABLES)
