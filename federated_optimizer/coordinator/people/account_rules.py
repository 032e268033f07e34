"""Rules of accounts and tokens: names, passwords, labels, expiries."""

import math
import re
import unicodedata

from federated_optimizer.coordinator.contract.people_model import PeopleError
from federated_optimizer.coordinator.contract.principal import LOCAL, Role
from streamsql.data.types import MICROSECONDS

MAX_ACCOUNTS = 5_000
MAX_TOKENS = 50
"""Of one account."""
MAX_SESSIONS = 20
"""Of one account; one more ends the one that was not used for longest."""
MAX_LABEL = 100
MAX_SOURCES = 200
MAX_DAYS = 3_650.0
MIN_PASSWORD, MAX_PASSWORD = 10, 256
_DISTINCT = 5
_NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,63}")
_RESERVED = frozenset({LOCAL.name, "nobody", "everybody", *Role})
_DAY = 86_400 * MICROSECONDS


def account_key(name: str) -> str:
    """Return the name under which an account is kept, of any text."""
    return name.strip().lower()[:65]


def checked_name(name: str) -> str:
    """Return a name as it is kept.

    Raises:
        PeopleError: It cannot be a name.
    """
    key = account_key(name)
    if not _NAME.fullmatch(key):
        raise PeopleError(
            f"{name!r:.80} cannot be the name of an account",
            hint="use at most 64 letters of a to z, digits, and . _ @ + - after the first",
        )
    if key in _RESERVED:
        raise PeopleError(f"{key!r} is no name for an account: Pando uses it itself")
    return key


def checked_password(name: str, password: str) -> str:
    """Return a password as it is hashed.

    Raises:
        PeopleError: It is too easy to guess, or too long.
    """
    password = normal(password)
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise PeopleError(
            f"a password has {MIN_PASSWORD} to {MAX_PASSWORD} characters, this one {len(password)}",
            code="weak_password",
        )
    plain = password.lower()
    if len(set(plain)) < _DISTINCT or (len(name) > 3 and plain.replace(name, "") in _FEW):
        raise PeopleError(
            "the password is too easy to guess", hint="use several words", code="weak_password"
        )
    return password


_FEW = frozenset({"", "1", "12", "123", "1234", "12345", "123456", "!"})


def normal(password: str) -> str:
    """Return a password in one form, whichever way a keyboard composes its letters."""
    return unicodedata.normalize("NFKC", password)


def checked_label(label: str) -> str:
    """Return the label of a token.

    Raises:
        PeopleError: It is empty or too long.
    """
    label = " ".join(label.split())
    if not 0 < len(label) <= MAX_LABEL or not label.isprintable():
        raise PeopleError(
            f"a token's label has 1 to {MAX_LABEL} characters", hint="say what the token is for"
        )
    return label


def expiry(now: int, days: float | None) -> int | None:
    """Return when something ends that lasts so many days.

    Raises:
        PeopleError: That is no length of time.
    """
    if days is None:
        return None
    if not math.isfinite(days) or not 0 < days <= MAX_DAYS:
        raise PeopleError(f"a token can last up to {MAX_DAYS:.0f} days, not {days:g}")
    return now + int(days * _DAY)


def checked_sources(sources: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the names that a token is limited to, sorted.

    Raises:
        PeopleError: There are none or too many.
    """
    if sources is None:
        return None
    names = sorted({name.strip().lower() for name in sources} - {""})
    if not 0 < len(names) <= MAX_SOURCES or any(len(name) > 200 for name in names):
        raise PeopleError(f"a token can be limited to 1 to {MAX_SOURCES} sources, tables or views")
    return tuple(names)


def lower_role(one: Role, other: Role) -> Role:
    """Return the role that may do less."""
    return other if one.may_act_as(other) else one
