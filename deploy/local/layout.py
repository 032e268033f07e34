"""Where `pando up` keeps things, below its data directory."""

from dataclasses import dataclass
from pathlib import Path

from streamsql.errors import DeploymentError
from ui.cli.federations import lock_of


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below one data directory."""

    root: Path

    @property
    def lock(self) -> Path:
        """Held while a federation runs on this directory."""
        return lock_of(self.root)

    @property
    def console(self) -> Path:
        """Address of the running console, for the command line."""
        return self.root / "console.json"

    @property
    def site(self) -> Path:
        """The provisioned site: map, tables, motes."""
        return self.root / "site"

    @property
    def tables(self) -> Path:
        """Files of the static tables."""
        return self.site / "tables"

    @property
    def lake(self) -> Path:
        """Files of the lake: readings that are kept, and managed tables."""
        return self.root / "lake"

    @property
    def segments(self) -> Path:
        """Segments that the lander has written and the pipeline has not kept yet."""
        return self.data("lander") / "segments"

    @property
    def schema(self) -> Path:
        """The CREATE statements of the site."""
        return self.site / "schema.sql"

    @property
    def secrets(self) -> Path:
        """Addresses of databases by name; the user writes it."""
        return self.root / "secrets"

    @property
    def restart_requests(self) -> Path:
        """A file named like a service asks for that service to be started again."""
        return self.root / "run" / "restart"

    @property
    def logs(self) -> Path:
        """A log file per service, with older ones."""
        return self.root / "logs"

    @property
    def processes(self) -> Path:
        """Names, process ids and commands of the running services."""
        return self.root / "run" / "services.json"

    @property
    def authority(self) -> Path:
        """The federation's certificate authority, and the broker's certificate."""
        return self.root / "authority"

    @property
    def passwords(self) -> Path:
        """Passwords at the broker, a file for each of its accounts."""
        return self.root / "run" / "passwords"

    def endpoints(self, gateway: str) -> Path:
        """File of a service's endpoints, with passwords; `pando endpoint` writes it."""
        return self.root / "endpoints" / f"{gateway}.json"

    def settings(self, service: str) -> Path:
        """A service's settings file."""
        return self.root / "run" / f"{service}.json"

    def data(self, service: str) -> Path:
        """A service's own data directory."""
        return self.root / "state" / service

    def keep_private(self) -> None:
        """Let nobody else into settings and services' data; earlier releases did.

        Raises:
            DeploymentError: They are somebody else's.
        """
        try:
            for name in ("run", "state", "endpoints", "logs"):
                folder = self.root / name
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
                for below in folder.iterdir():
                    below.chmod(0o700 if below.is_dir() else 0o600)
        except OSError as error:
            raise DeploymentError(
                f"cannot make {error.filename} private: {error.strerror}",
                hint="choose another directory with --data",
            ) from error
