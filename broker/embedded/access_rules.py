"""Access rules for connecting, publishing and subscribing; reads the file formats of Mosquitto.

One pair of files serves both brokers.

Passwords: lines `user:$7$iterations$salt$hash` as `mosquitto_passwd` writes them (PBKDF2 with
SHA-512, base64). With a password file a client's id must be its user name: a stolen id is worth
nothing without the password.

Access list: `user NAME` starts the section of one user; `topic [read|write|readwrite] FILTER` is a
right in the current section (before the first `user`: of everybody without a name);
`pattern [read|write|readwrite] FILTER` is a right of everybody, with `%c` for the client id and
`%u` for the user name. What no line allows is forbidden.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

from host.mqtt.topic_filters import check_filter, matches

_RIGHTS = {"read": "r", "write": "w", "readwrite": "rw"}


@dataclass(frozen=True, slots=True)
class Secret:
    """One line of a password file."""

    iterations: int
    salt: bytes
    digest: bytes

    def fits(self, password: bytes) -> bool:
        """Compare in constant time."""
        digest = hashlib.pbkdf2_hmac(
            "sha512", password, self.salt, self.iterations, len(self.digest)
        )
        return hmac.compare_digest(digest, self.digest)


@dataclass(frozen=True, slots=True)
class Right:
    """One line of an access list; `modes` holds `r`, `w` or both."""

    modes: str
    topic_filter: str


@dataclass(frozen=True, slots=True)
class Access:
    """Decides for the broker on every connect, publish and subscribe; by default allows all.

    Attributes:
        secrets: By user; None lets everybody in.
        rights: By user ("" for those without a name); None allows everything but to publish under
            `$SYS/` and `$CONTROL/`, which are the broker's own.
        patterns: Rights of everybody, with placeholders.
    """

    secrets: dict[str, Secret] | None = None
    rights: dict[str, tuple[Right, ...]] | None = None
    patterns: tuple[Right, ...] = ()

    @classmethod
    def read(cls, passwords: Path | None, acl: Path | None) -> Access:
        """Read the files that are given.

        Raises:
            ValueError: A file cannot be read or a line is malformed; says which.
        """
        secrets = None if passwords is None else _read_passwords(passwords)
        if acl is None:
            return cls(secrets, None)
        rights, patterns = _read_rights(acl)
        return cls(secrets, rights, patterns)

    def client_id(self, given: str, user: str | None) -> str:
        """Return the id as it was given."""
        del user
        return given

    def receives_all(self, client_id: str, user: str | None, topic_filter: str) -> bool:
        """Return True: a filter that may be subscribed to covers what it matches."""
        del client_id, user, topic_filter
        return True

    def may_receive(self, client_id: str, user: str | None, topic: str) -> bool:
        """Return True: a file of rights does not change while a client is connected."""
        del client_id, user, topic
        return True

    def may_connect(self, client_id: str, user: str | None, password: bytes | None) -> bool:
        """Check user and password, and that the client id is the user name."""
        if self.secrets is None:
            return True
        secret = self.secrets.get(user or "")
        if secret is None or password is None or client_id != user:
            return False
        return secret.fits(password)

    def may_publish(self, client_id: str, user: str | None, topic: str) -> bool:
        """Check a topic name against the rights to write; also for wills."""
        if topic.startswith(("$SYS/", "$CONTROL/")):
            return False
        return self.rights is None or any(
            matches(allowed, topic) for allowed in self._allowed("w", client_id, user)
        )

    def may_subscribe(self, client_id: str, user: str | None, topic_filter: str) -> bool:
        """Check that every topic a plain filter may match is allowed to be read."""
        return self.rights is None or any(
            covers(allowed, topic_filter) for allowed in self._allowed("r", client_id, user)
        )

    def _allowed(self, mode: str, client_id: str, user: str | None) -> list[str]:
        rights = (self.rights or {}).get(user or "", ())
        found = [right.topic_filter for right in rights if mode in right.modes]
        for right in self.patterns:
            if mode in right.modes:
                topic_filter = _fill(right.topic_filter, client_id, user or "")
                if topic_filter is not None:
                    found.append(topic_filter)
        return found


def covers(allowed: str, wanted: str) -> bool:
    """Say whether every topic that `wanted` matches is matched by `allowed` too.

    Examples:
        >>> covers("site/#", "site/+/state"), covers("site/+", "site/#")
        (True, False)
    """
    if allowed[0] in "+#" and wanted.startswith("$"):
        return False
    rights, wishes = allowed.split("/"), wanted.split("/")
    for index, right in enumerate(rights):
        if right == "#":
            return True
        if index >= len(wishes) or wishes[index] == "#":
            return False
        if right not in ("+", wishes[index]):
            return False
    return len(rights) == len(wishes)


def _fill(pattern: str, client_id: str, user: str) -> str | None:
    """Put the names into a pattern; None when a name could stand for more than itself."""
    for placeholder, name in (("%c", client_id), ("%u", user)):
        if placeholder in pattern:
            if not name or any(character in name for character in "+#/"):
                return None
            pattern = pattern.replace(placeholder, name)
    return pattern


def _lines(file: Path) -> list[tuple[str, str]]:
    """Return (place, text) of the lines that say something."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {file}: {error}") from error
    return [
        (f"{file}, line {number}", line.strip())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]


def _read_passwords(file: Path) -> dict[str, Secret]:
    secrets: dict[str, Secret] = {}
    for place, line in _lines(file):
        user, _, rest = line.partition(":")
        match rest.split("$"):
            case ["", "7", iterations, salt, digest] if user and iterations.isdecimal():
                secrets[user] = Secret(
                    int(iterations), _base64(place, salt), _base64(place, digest)
                )
            case _:
                # The line itself is not repeated: it may hold a password.
                message = f"{place}: expected user:$7$iterations$salt$hash (use mosquitto_passwd)"
                raise ValueError(message)
    return secrets


def _base64(place: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{place}: salt or hash is not base64 (use mosquitto_passwd)") from error


def _read_rights(file: Path) -> tuple[dict[str, tuple[Right, ...]], tuple[Right, ...]]:
    rights: dict[str, tuple[Right, ...]] = {}
    patterns: list[Right] = []
    section = ""
    for place, line in _lines(file):
        keyword, _, rest = line.partition(" ")
        rest = rest.strip()
        if keyword == "user" and rest:
            section = rest
        elif keyword == "topic":
            rights[section] = (*rights.get(section, ()), _read_right(place, rest))
        elif keyword == "pattern":
            patterns.append(_read_right(place, rest))
        else:
            raise ValueError(f"{place}: expected user, topic or pattern, got {line!r}")
    return rights, tuple(patterns)


def _read_right(place: str, text: str) -> Right:
    first, _, rest = text.partition(" ")
    modes, topic_filter = (_RIGHTS[first], rest.strip()) if first in _RIGHTS else ("rw", text)
    try:
        check_filter(topic_filter)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
    return Right(modes, topic_filter)
