"""Files made from the rights: an access list, and roles with placeholders.

The access list is for brokers without accounts that change: Mosquitto's `acl_file`, which the
embedded broker reads too. The roles are what `deploy/mosquitto/start.sh` fills in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from broker.access.dynamic_security import role_of
from broker.access.rights import Mode, Right, SiteKind, rights_of_pattern

SITE: Final = "@SITE@"
FEDERATION: Final = "@FEDERATION@"
"""Placeholders in the files of roles."""

_HEAD: Final = """\
# Written by `python -m broker.access files deploy/mosquitto` from broker/access/rights.py.
#
# For brokers without accounts that change (acl_file of Mosquitto, --acl of the embedded broker).
# %c is the client id, which equals the user name. Every user has the rights of a gateway and of a
# static engine under its own id; the users named here have more.
"""
_USERS: Final = (SiteKind.BASE, SiteKind.COORDINATOR, SiteKind.VIEWER, SiteKind.LANDER)
_MODES: Final = {
    frozenset({Mode.READ}): "read",
    frozenset({Mode.WRITE}): "write",
    frozenset({Mode.READ, Mode.WRITE}): "readwrite",
}


def access_list() -> str:
    """Return the access list for any federation.

    Its users are `base`, `coordinator`, `viewer` and `lander`; all others are gateways or static
    engines.
    """
    everybody = [
        *rights_of_pattern(SiteKind.GATEWAY, "%c", "+"),
        *rights_of_pattern(SiteKind.STATIC, "%c", "+"),
    ]
    lines = [_HEAD, *_lines("pattern", everybody)]
    for kind in _USERS:
        own = rights_of_pattern(kind, kind, "+")
        known = {Right(r.mode, r.topic.replace("%c", kind)) for r in everybody}
        more = [r for r in own if r not in known and not r.topic.startswith("$CONTROL")]
        lines += ["", f"user {kind}", *_lines("topic", more)]
    return "\n".join(lines) + "\n"


def _lines(keyword: str, rights: Iterable[Right]) -> list[str]:
    modes: dict[str, set[Mode]] = {}
    for right in rights:
        modes.setdefault(right.topic, set()).add(right.mode)
    return [f"{keyword} {_MODES[frozenset(m)]} {topic}" for topic, m in modes.items()]


def role_template(kind: SiteKind) -> bytes:
    """Return the role of a kind as JSON, with placeholders for site and federation."""
    role = role_of(SITE, rights_of_pattern(kind, SITE, FEDERATION))
    return msgspec.json.format(msgspec.json.encode(role), indent=2) + b"\n"
