"""Where `pando up` keeps things, below its data directory."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from deploy.local.claim import is_claimed
from streamsql.errors import DeploymentError


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

    def request_restart(self, service: str) -> None:
        """Ask the running federation to start a service again.

        Raises:
            DeploymentError: No federation runs here, or it has no such service.
        """
        known = self._running()
        if not known:
            raise DeploymentError(
                f"no federation runs on data directory {self.root}",
                hint="start one with `pando up`, or name its directory with --data",
            )
        if service not in known:
            names = ", ".join(sorted(known))
            raise DeploymentError(f"there is no service {service!r}", hint=f"one of: {names}")
        self.restart_requests.mkdir(parents=True, exist_ok=True)
        (self.restart_requests / service).touch()

    def _running(self) -> list[str]:
        """Return the names of the services that run here; none after a crash."""
        if not is_claimed(self.lock):
            return []
        try:
            return list(json.loads(self.processes.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return []


def last_console_file() -> Path:
    """Return the file in the user's state directory that names the last console started."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "pando" / "console.json"


def running_directory() -> Path:
    """Return the data directory of the federation that was started last.

    Raises:
        DeploymentError: None runs.
    """
    for path in (Path("pando-data") / "console.json", last_console_file()):
        try:
            return Path(json.loads(path.read_text(encoding="utf-8"))["data"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    raise DeploymentError(
        "no federation runs here",
        hint="start one with `pando up`, or name its directory with --data",
    )
