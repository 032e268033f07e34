"""Argon2 hashes of passwords, computed off the event loop and few at a time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from federated_optimizer.coordinator.contract.people_model import TooManyAttemptsError
from federated_optimizer.coordinator.people.account_rules import MAX_PASSWORD, normal

AT_ONCE = 2
"""Hashes computed at the same time: 2 x 32 MiB, whatever number of people sign in."""
WAITING = 32
"""Sign-ins that wait for their turn, about two seconds; more are refused at once."""


def default_hasher() -> PasswordHasher:
    """Return argon2id with 32 MiB and 3 passes: about 60 ms of one core."""
    return PasswordHasher(time_cost=3, memory_cost=32_768, parallelism=1)


class Passwords:
    """Hashes and compares, in this thread."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or default_hasher()
        # Compared with where there is no account, so that the time does not tell whether there is.
        self._nobody = self._hasher.hash("nobody's password")

    def hash(self, password: str) -> str:
        """Return what is kept of a password."""
        return self._hasher.hash(normal(password))

    def match(self, kept: str, password: str) -> bool:
        """Whether a password is the kept one; takes as long when nothing is kept."""
        try:
            self._hasher.verify(kept or self._nobody, normal(password))
        except (VerificationError, InvalidHashError):
            return False
        return bool(kept)

    def is_outdated(self, kept: str) -> bool:
        """Whether a hash was made with other costs than today's."""
        return self._hasher.check_needs_rehash(kept)


class PasswordWork:
    """The same, awaited: a few at a time on threads of its own, a bounded number waiting."""

    def __init__(self, passwords: Passwords | None = None) -> None:
        self.passwords = passwords or Passwords()
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="password")
        self._asked = 0

    async def match(self, kept: str, password: str) -> bool:
        """Whether a password is the kept one.

        Raises:
            TooManyAttemptsError: Too many wait already.
        """
        if len(password) > MAX_PASSWORD:
            return False
        if self._asked >= AT_ONCE + WAITING:
            raise TooManyAttemptsError(
                "too many people are signing in at the same time", 2.0, hint="try again"
            )
        self._asked += 1
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, self.passwords.match, kept, password)
        # Counted until it is done, also when the client goes away: the thread is busy all the same.
        work.add_done_callback(self._done)
        return await asyncio.shield(work)

    async def hash(self, password: str) -> str:
        """Return what is kept of a password."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.passwords.hash, password)

    def close(self) -> None:
        """Start nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, work: asyncio.Future[bool]) -> None:
        self._asked -= 1
        if not work.cancelled():
            work.exception()  # is noted by whoever awaits it, if anybody still does
