"""Federations that run on this machine, and which of them a command means.

Each `pando up` keeps an entry in the user's state directory. A command acts on the federation it
names, with `--console`, PANDO_CONSOLE or `--data`; a command that names none acts on the one in
this folder, or the only one that runs. It never chooses between several.
"""

import contextlib
import hashlib
import ipaddress
import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from host.files.file_lock import is_locked
from streamsql.errors import DeploymentError

HERE = Path("pando-data")
MAX_ENTRIES = 1_000
_NAME_ONE = "name one with --console URL or PANDO_CONSOLE"


@dataclass(frozen=True, slots=True)
class LocalFederation:
    """One that runs.

    Attributes:
        console: Address of its console.
        data: Its data directory.
    """

    console: str
    data: Path

    def as_json(self) -> bytes:
        """Return what entries hold."""
        return json.dumps({"console": self.console, "data": str(self.data)}).encode()


def entry_of(data: Path) -> Path:
    """Return the file that names the federation of a data directory while it runs."""
    name = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    return _entries() / f"{name}.json"


def lock_of(data: Path) -> Path:
    """Return the file that is locked while a federation runs on a data directory."""
    return data / "lock"


def federation_of(data: Path) -> LocalFederation | None:
    """Return the federation that runs on a data directory, or None."""
    return _read(data / "console.json")


def running() -> list[LocalFederation]:
    """Return the user's federations that run, by address."""
    found = {}
    with contextlib.suppress(OSError):
        for path in sorted(_entries().glob("*.json"))[:MAX_ENTRIES]:
            federation = _read(path)
            if federation is not None:
                found[federation.data] = federation
    return sorted(found.values(), key=lambda federation: federation.console)


def owner_secret(data: Path) -> str:
    """Return the secret that a console keeps for the owner of its data directory.

    Empty where there is none, or we may not read it.
    """
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (data / "state" / "console" / "owner").read_text(encoding="ascii").strip()
    return ""


def owner_secret_at(address: str) -> str:
    """Return the same of a federation that runs, by its console's address."""
    here = _read(HERE / "console.json")
    for federation in [*filter(None, [here]), *running()]:
        if _is_same(federation.console, address):
            return owner_secret(federation.data)
    return ""


def authority_at(address: str) -> Path | None:
    """Return the authority's certificate of a federation that runs, by its console's address."""
    here = _read(HERE / "console.json")
    for federation in [*filter(None, [here]), *running()]:
        file = federation.data / "authority" / "ca.crt"
        if _is_same(federation.console, address) and file.is_file():
            return file
    return None


def console_address(given: str | None) -> str | None:
    """Return the address of the console that is meant, or None when nothing says which.

    Args:
        given: With `--console`.

    Raises:
        DeploymentError: Several federations run, and none is named.
    """
    named = _named(given)
    if named is not None:
        return named
    federation = _meant()
    return federation.console if federation is not None else None


def data_directory(console: str | None, data: Path | None) -> Path:
    """Return the data directory of the federation that is meant.

    Args:
        console: With `--console`.
        data: With `--data`.

    Raises:
        DeploymentError: None runs that is named so, or several run and none is named.
    """
    if data is not None:
        here = _read(data.resolve() / "console.json")
        if console is not None and here is not None and not _is_same(here.console, console):
            raise DeploymentError(
                f"the console of --data {data} is at {here.console}, not at {console}",
                hint="remove one of the two",
            )
        return data.resolve()
    named = _named(console)
    if named is None:
        federation = _meant()
        if federation is None:
            raise DeploymentError(
                "no federation runs here",
                hint="start one with `pando up`, or name its directory with --data",
            )
        return federation.data
    found = _read(HERE / "console.json")
    for federation in [*filter(None, [found]), *running()]:
        if _is_same(federation.console, named):
            return federation.data
    raise DeploymentError(
        f"none of your federations on this machine has its console at {named}",
        hint="run the command on the machine of that federation, or name its directory with --data",
    )


def _named(given: str | None) -> str | None:
    named = given or os.environ.get("PANDO_CONSOLE")
    return named.rstrip("/") if named else None


def _meant() -> LocalFederation | None:
    here = _read(HERE / "console.json")
    if here is not None:
        return here
    found = running()
    if len(found) > 1:
        listed = ", ".join(f"{each.console} ({each.data})" for each in found[:5])
        raise DeploymentError(f"{len(found)} federations run: {listed}", hint=_NAME_ONE)
    return found[0] if found else None


def _read(path: Path) -> LocalFederation | None:
    """Return the federation that a file names, if it runs."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        federation = LocalFederation(str(facts["console"]), Path(facts["data"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return federation if is_locked(lock_of(federation.data)) else None


def _is_same(one: str, other: str) -> bool:
    return _place(one) == _place(other)


def _place(address: str) -> tuple[str, int | None]:
    """Return host and port, all names of this machine's loopback address as one."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return address, None
    with contextlib.suppress(ValueError):
        host = "localhost" if ipaddress.ip_address(host).is_loopback else host
    return host, port or {"http": 80, "https": 443}.get(parts.scheme)


def _entries() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "pando" / "running"
