"""Options of `pando up`, checked."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from static_engine.spark.spark_masters import master_kind
from streamsql.errors import DeploymentError
from ui.console_names import host_name

DEFAULT_PORT = 8420
MAX_GATEWAYS = 32


@dataclass(frozen=True, slots=True)
class UpOptions:
    """Options of `pando up`.

    Attributes:
        site: OSM indoor GeoJSON; None is the sample building.
        replay: A recording; with it no building is simulated.
        speed: How many times faster than recorded.
        broker: Address of a broker that runs already; "embedded" or "mosquitto" starts that one,
            None Mosquitto when it is installed and else our own.
        gateways: How many.
        port: Of the console, on 127.0.0.1.
        data: Directory for everything that is kept.
        spark: Whether static tables are answered by Spark.
        spark_master: Master of the Spark cluster; empty: Spark works on this machine.
        calendar: .ics file or address; None is the sample calendar.
        database: Catalog database URL; None is SQLite in the data directory.
        tables: Folders whose files tables may name in addition to the site's; none means the
            working directory, unless that is the root or the home directory.
        secrets: File of addresses that tables name as `secret:name`; None is `secrets` in `data`.
        allow_hosts: Names by which browsers may ask the console, in addition to those of loopback.
        secure: Whether the broker has accounts and TLS.
        console_host: Address of the console for other machines, over TLS; needs `secure`.
        broker_listen: Address of the broker for other machines, `HOST:PORT`; needs `secure`.
        metrics_port: Of the first gateway's `/metrics`; those of the others, of the base site and
            of the static engine and of the lander follow. 0: none has one.
        restart: Whether services that die are started again.
    """

    site: Path | None = None
    replay: Path | None = None
    speed: float = 1.0
    broker: str | None = None
    gateways: int = 3
    port: int = DEFAULT_PORT
    data: Path = Path("pando-data")
    spark: bool = True
    spark_master: str = ""
    calendar: str | None = None
    database: str | None = None
    tables: tuple[Path, ...] = ()
    secrets: Path | None = None
    allow_hosts: tuple[str, ...] = ()
    metrics_port: int = 0
    restart: bool = True
    secure: bool = False
    broker_listen: str = ""
    console_host: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot work, saying which option to change.

        Raises:
            DeploymentError: An option is out of range, or two exclude each other.
        """
        if not 1 <= self.gateways <= MAX_GATEWAYS:
            raise DeploymentError(
                f"--gateways {self.gateways}; write a number from 1 to {MAX_GATEWAYS}"
            )
        if not 0 < self.port < 65536:
            raise DeploymentError(f"--port {self.port}; write a number from 1 to 65535")
        if self.metrics_port and not 1 <= self.metrics_port <= 65_535 - self.gateways - 2:
            raise DeploymentError(
                f"--metrics-port {self.metrics_port}; write a number from 1 to "
                f"{65_535 - self.gateways - 2}: each service takes the next one"
            )
        if not 0.001 <= self.speed <= 100_000:
            raise DeploymentError(f"--speed {self.speed}; write a number from 0.001 to 100000")
        if self.site is not None and self.replay is not None:
            raise DeploymentError(
                "--site and --replay exclude each other", hint="a replay has its own nodes"
            )
        for name, path in (("--site", self.site), ("--replay", self.replay)):
            if path is not None and not path.is_file():
                raise DeploymentError(f"{name} {path}: there is no such file")
        for folder in self.tables:
            if not folder.is_dir():
                raise DeploymentError(f"--tables {folder}: there is no such folder")
        if self.secrets is not None and not self.secrets.is_file():
            raise DeploymentError(f"--secrets {self.secrets}: there is no such file")
        for host in self.allow_hosts:
            if not host_name(host) or "," in host:
                raise DeploymentError(
                    f"--allow-host {host!r:.80}", hint="give a name or an address, without http://"
                )
        self._check_calendar()
        self._check_broker()
        self._check_master()

    def _check_master(self) -> None:
        if not self.spark_master:
            return
        if not self.spark:
            raise DeploymentError("--spark-master and --no-spark exclude each other")
        try:
            master_kind(self.spark_master)
        except DeploymentError as error:
            raise DeploymentError(
                f"--spark-master {self.spark_master!r:.80} is no master of Spark's",
                hint=error.hint,
            ) from None

    def _check_broker(self) -> None:
        if self.secure and self.broker not in (None, "embedded", "mosquitto"):
            raise DeploymentError(
                "--secure makes the accounts of a broker that pando up starts",
                hint="leave --broker ADDRESS out, or --secure: that broker has accounts of its own",
            )
        if self.console_host:
            self._check_console_host()
        if not self.broker_listen:
            return
        if not self.secure:
            raise DeploymentError("--broker-listen needs --secure: accounts and TLS")
        host, port = self.broker_place
        try:
            ipaddress.ip_address(host)
        except ValueError:
            host = ""
        if not host or not 0 < port < 65536:
            raise DeploymentError(
                f"--broker-listen {self.broker_listen!r:.80}",
                hint="give an IP address of this machine and a port: 0.0.0.0:8883",
            )

    def _check_console_host(self) -> None:
        if not self.secure:
            raise DeploymentError("--console-host needs --secure: TLS")
        try:
            ipaddress.ip_address(self.console_host)
        except ValueError:
            raise DeploymentError(
                f"--console-host {self.console_host!r:.80}",
                hint="give an IP address of this machine, or 0.0.0.0 for all of them",
            ) from None

    @property
    def broker_place(self) -> tuple[str, int]:
        """Address and port that the broker listens on; port 0 is any free one."""
        if not self.broker_listen:
            return "127.0.0.1", 0
        host, _, port = self.broker_listen.rpartition(":")
        return host.strip("[]"), int(port) if port.isdecimal() else -1

    def metrics_port_of(self, service: str) -> int:
        """Return the port of a service's `/metrics`, 0 for none."""
        gateways = (f"gw-{number}" for number in range(1, self.gateways + 1))
        names = [*gateways, "base", "static", "lander"]
        return self.metrics_port + names.index(service) if self.metrics_port else 0

    @property
    def table_folders(self) -> tuple[str, ...]:
        """The folders whose files tables may name in addition to the site's."""
        if self.tables:
            return tuple(str(folder.resolve()) for folder in self.tables)
        here = Path.cwd()
        # Too much for nobody having asked for it: keys, and what other programs remember.
        return () if here in (Path(here.anchor), Path.home()) else (str(here),)

    def _check_calendar(self) -> None:
        place = self.calendar
        if place is not None and "://" not in place and not Path(place).is_file():
            raise DeploymentError(
                f"--calendar {place}: there is no such file",
                hint="give an .ics file, or an address with http:// or https://",
            )
