"""Read a JSON file of ours into a type; what is wrong is said with the file's name."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from streamsql.errors import DeploymentError

log = logging.getLogger(__name__)

_Content = TypeVar("_Content")


def read_json(  # noqa: PLR0913  (what errors say)
    path: Path,
    kind: type[_Content],
    what: str,
    *,
    hint: str = "",
    known: Iterable[str] = (),
    max_bytes: int = 100_000_000,
) -> _Content:
    """Return the content of a file.

    Args:
        path: The file.
        kind: Its type, as msgspec takes it.
        what: What it holds, for errors: "settings", "motes".
        hint: What to do about a file that cannot be read.
        known: Its fields, for who has misspelt one.
        max_bytes: More is refused.

    Raises:
        DeploymentError: It cannot be read, is no JSON, or is not of the type.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise DeploymentError(f"cannot read {what} {path}: {error.strerror}", hint=hint) from error
    if len(content) > max_bytes:
        raise DeploymentError(f"{what} {path}: it is larger than {max_bytes} bytes")
    try:
        return msgspec.json.decode(content, type=kind)
    except DeploymentError as error:
        raise DeploymentError(f"{what} {path}: {error.message}", hint=error.hint) from error
    except (msgspec.MsgspecError, RecursionError) as error:
        fields = ", ".join(known)
        raise DeploymentError(
            f"{what} {path}: {error}", hint=f"known: {fields}" if fields else ""
        ) from error


def read_kept(path: Path, kind: type[_Content], what: str, *, max_bytes: int) -> _Content | None:
    """Return what a service has kept for itself in a file; None: there is none that can be used.

    One rule for such files: a damaged one keeps no service from starting. It is set aside as
    `NAME.broken`, for whoever wants to look at it, and the log says so.

    Args:
        path: The file.
        kind: Its type, as msgspec takes it.
        what: What it holds, for the log.
        max_bytes: A larger file is damaged.
    """
    try:
        return read_json(path, kind, what, max_bytes=max_bytes)
    except DeploymentError as error:
        if not path.exists():
            return None
        log.warning("%s; set aside as %s.broken", error.message, path.name)
    try:
        path.replace(path.with_name(f"{path.name}.broken"))
    except OSError as error:
        log.warning("%s cannot be set aside: %s", path, error.strerror)
    return None
