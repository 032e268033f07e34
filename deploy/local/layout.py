"""Where `pando up` keeps things, below its data directory."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below one data directory."""

    root: Path

    @property
    def lock(self) -> Path:
        """Held while a federation runs on this directory."""
        return self.root / "lock"

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
    def schema(self) -> Path:
        """The CREATE statements of the site."""
        return self.site / "schema.sql"

    @property
    def restart_requests(self) -> Path:
        """A file named like a service asks for that service to be started again."""
        return self.root / "run" / "restart"

    @property
    def processes(self) -> Path:
        """Names, process ids and commands of the running services."""
        return self.root / "run" / "services.json"

    def settings(self, service: str) -> Path:
        """A service's settings file."""
        return self.root / "run" / f"{service}.json"

    def data(self, service: str) -> Path:
        """A service's own data directory."""
        return self.root / "state" / service
