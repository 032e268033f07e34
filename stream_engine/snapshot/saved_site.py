"""A snapshot of a site as bytes, and whether it can be used."""

from typing import Any

import msgspec

from streamsql.algebra.operators import Scan
from streamsql.errors import DeploymentError
from streamsql.wire.fragments import FragmentBundle

FORMAT = 2
"""Grows whenever saved state of the same shape begins to mean something else."""

MOST_AHEAD = 60_000_000
"""Microseconds that a snapshot may be ahead of the clock; further, it is of another time."""


class SnapshotError(DeploymentError):
    """A snapshot cannot be used: damaged, of another version, site or time."""

    code = "snapshot_error"


class SavedQuery(msgspec.Struct, frozen=True, array_like=True):
    """A query; without state where it is rebuilt, with the reason where it should have one."""

    bundle: FragmentBundle
    since: int
    state: bytes = b""
    unsaved: str = ""


class SavedSite(msgspec.Struct, frozen=True, array_like=True):
    """A site between two steps."""

    format: int
    site: str
    now: int
    scans: tuple[Scan, ...]
    sources: bytes
    queries: tuple[SavedQuery, ...]
    host: bytes


encode_site = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SavedSite).decode


def decode_site(content: bytes, site: str, now: int) -> SavedSite:
    """Return a snapshot that is ours to use.

    Args:
        content: As `encode_site` gave it.
        site: Who wants to use it.
        now: The time of its clock.

    Raises:
        SnapshotError: It is not.
    """
    try:
        version = msgspec.msgpack.decode(content, type=tuple[Any, ...])[:1]
        if version != (FORMAT,):
            raise SnapshotError(f"it has format {version}, this program reads {FORMAT}")
        saved = _decode(content)
    except (msgspec.MsgspecError, ValueError) as error:
        raise SnapshotError(f"it cannot be read: {error}") from error
    if saved.site != site:
        raise SnapshotError(f"it is of site {saved.site!r:.80}, this is {site!r}")
    if saved.now > now + MOST_AHEAD:
        ahead = (saved.now - now) // 1_000_000
        raise SnapshotError(f"its time is {ahead} s ahead of this site's clock")
    return saved
