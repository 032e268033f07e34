"""Secrets with which commands ask a console: given, kept by `pando login`, or its owner's.

PANDO_TOKEN wins. `pando login` keeps a session for each console in a file that only its user may
read. Whoever may read the data directory of a federation on this machine needs neither.
"""

import contextlib
import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from host.files.atomic_file import PRIVATE, replace_file
from host.files.file_lock import FileLock
from streamsql.errors import DeploymentError
from ui.cli.federations import owner_secret_at

VARIABLE = "PANDO_TOKEN"
MAX_SECRET = 512
MAX_KEPT = 100


class KeptSignIn(msgspec.Struct, frozen=True):
    """A session that `pando login` began.

    Attributes:
        name: Of the account.
        secret: Of the session.
    """

    name: str
    secret: str


def kept_file() -> Path:
    """Return the file of the kept sessions."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "pando" / "sign_ins.json"


def kept_sign_ins() -> dict[str, KeptSignIn]:
    """Return the kept sessions by address of their console.

    Raises:
        DeploymentError: The file is damaged, or others may read it.
    """
    file = kept_file()
    try:
        with file.open("rb") as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise DeploymentError(
                    f"{file} holds secrets, but others may read it", hint=f"chmod 600 {file}"
                )
            content = opened.read(1_000_000)
        return msgspec.json.decode(content, type=dict[str, KeptSignIn])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DeploymentError(
            f"cannot read {file}: {why}", hint="remove it, then `pando login` again"
        ) from error


def keep(address: str, sign_in: KeptSignIn | None) -> None:
    """Keep the session of a console, or none any more.

    Raises:
        DeploymentError: The file cannot be written.
    """
    file = kept_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(file.with_suffix(".lock"))
        if not lock.take():
            raise DeploymentError(f"another command writes {file}", hint="try again")
        try:
            kept = kept_sign_ins()
            kept.pop(address, None)
            if sign_in is not None:
                kept[address] = sign_in
            newest = dict(list(kept.items())[-MAX_KEPT:])
            replace_file(file, msgspec.json.encode(newest), mode=PRIVATE)
        finally:
            lock.release()
    except OSError as error:
        raise DeploymentError(f"cannot write {file}: {error.strerror}") from error


def secret_for(address: str) -> str:
    """Return the secret with which to ask a console, or nothing.

    Raises:
        DeploymentError: It would go to another machine unencrypted, or is malformed.
    """
    given = os.environ.get(VARIABLE, "").strip()
    if len(given) > MAX_SECRET or not given.isascii() or not given.isprintable() or " " in given:
        raise DeploymentError(f"{VARIABLE} is no token", hint="`pando token create` makes one")
    kept = None if given else kept_sign_ins().get(address)
    secret = given or (kept.secret if kept is not None else "")
    if not secret:
        return owner_secret_at(address) if _is_here(address) else ""
    check_encrypted(address)
    return secret


def check_encrypted(address: str) -> None:
    """Do nothing where a secret may be sent.

    Raises:
        DeploymentError: It would go to another machine unencrypted.
    """
    if not address.lower().startswith("https://") and not _is_here(address):
        raise DeploymentError(
            f"a password or token would go to {address} unencrypted",
            hint="write https://…; with a certificate of the federation's own authority add --ca",
        )


def _is_here(address: str) -> bool:
    host = ""
    with contextlib.suppress(ValueError):
        host = (urlsplit(address).hostname or "").rstrip(".")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
