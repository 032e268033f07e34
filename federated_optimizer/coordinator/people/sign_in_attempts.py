"""Slows down who guesses passwords, without locking out who knows theirs.

Failures are counted by account and address together, by address, and by account. After the first
few, each doubles the wait until the next attempt is looked at. The count by account is for guesses
from many addresses; its wait is short, and who has signed in from an address does not wait for it
there: else anybody could keep an account's owner out.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from federated_optimizer.coordinator.contract.people_model import TooManyAttemptsError

MAX_ENTRIES = 20_000
FORGOTTEN_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Attempts that may fail before the next waits, and the longest wait in seconds."""

    free: int
    seconds: float

    def wait(self, failures: int) -> float:
        """Return the seconds after so many failures."""
        above = failures - self.free
        return min(self.seconds, 2.0 ** min(above, 30)) if above >= 0 else 0.0


BOTH = Patience(5, 300.0)
ADDRESS = Patience(30, 300.0)
ACCOUNT = Patience(50, 20.0)

_Key = tuple[str, str]
"""Account and address; one of them is empty where it does not count."""


@dataclass(slots=True)
class _Failures:
    number: int = 0
    until: float = 0.0
    last: float = 0.0


class SignInAttempts:
    """Failed attempts of the last hour, bounded in number: the oldest are forgotten.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: OrderedDict[_Key, _Failures] = OrderedDict()
        self._known: OrderedDict[_Key, None] = OrderedDict()

    def begin(self, account: str, address: str) -> None:
        """Count an attempt as failed until it succeeds, so that many at once count as many.

        Raises:
            TooManyAttemptsError: It is not looked at yet.
        """
        now = self._clock()
        counted = self._counted(account, network_of(address))
        wait = max(self._found(key, now).until - now for key, _ in counted)
        if wait > 0:
            raise TooManyAttemptsError(
                f"too many sign-ins have failed; the next is possible in {wait:.0f} s",
                wait,
                hint="wait, or ask an administrator for a new password",
            )
        for key, patience in counted:
            found = self._found(key, now)
            found.number += 1
            found.last = now
            found.until = now + patience.wait(found.number)
            self._failures[key] = found
            self._failures.move_to_end(key)
        while len(self._failures) > MAX_ENTRIES:
            self._failures.popitem(last=False)

    def undo(self, account: str, address: str) -> None:
        """Count an attempt no more that was not looked at after all."""
        for key, _ in self._counted(account, network_of(address)):
            found = self._failures.get(key)
            if found is not None:
                found.number -= 1
                found.until = 0.0

    def succeeded(self, account: str, address: str) -> None:
        """Forget the failures of an account at an address."""
        network = network_of(address)
        self.undo(account, address)
        self._failures.pop((account, network), None)
        self._known[account, network] = None
        self._known.move_to_end((account, network))
        while len(self._known) > MAX_ENTRIES:
            self._known.popitem(last=False)

    def _counted(self, account: str, network: str) -> list[tuple[_Key, Patience]]:
        both = (account, network)
        counted: list[tuple[_Key, Patience]] = [(both, BOTH), (("", network), ADDRESS)]
        if both not in self._known:
            counted.append(((account, ""), ACCOUNT))
        return counted

    def _found(self, key: _Key, now: float) -> _Failures:
        found = self._failures.get(key)
        if found is None or now - found.last > FORGOTTEN_SECONDS:
            return _Failures()
        return found


def network_of(address: str) -> str:
    """Return what stands for a client: an IPv4 address, or the /64 network of an IPv6 address.

    Examples:
        >>> network_of("192.0.2.7"), network_of("2001:db8::1"), network_of("testclient")
        ('192.0.2.7', '2001:db8::/64', 'testclient')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))
