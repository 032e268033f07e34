"""Passwords that people type, compared with what is kept: as slowly as guessing deserves."""

from collections.abc import Callable

from federated_optimizer.coordinator.contract.people_model import (
    SignInRefusedError,
    TooManyAttemptsError,
)
from federated_optimizer.coordinator.people.passwords import PasswordWork
from federated_optimizer.coordinator.people.people_store import StoredAccount
from federated_optimizer.coordinator.people.sign_in_attempts import SignInAttempts


class PasswordChecks:
    """Checks, with the attempts that failed before.

    Args:
        work: Compares.
        elapsed: Monotonic seconds.
    """

    def __init__(self, work: PasswordWork, elapsed: Callable[[], float]) -> None:
        self._work = work
        self._attempts = SignInAttempts(elapsed)

    async def check(
        self, key: str, found: StoredAccount | None, password: str, address: str
    ) -> tuple[StoredAccount, str]:
        """Return the account, and the hash to keep from now on.

        Args:
            key: The name that was typed.
            found: The account of that name, if there is one.
            password: As typed.
            address: Of the client.

        Raises:
            SignInRefusedError: The password is not the account's, there is none, or it is disabled.
            TooManyAttemptsError: Too many attempts failed, or are being looked at.
        """
        self._attempts.begin(key, address)
        try:
            matches = await self._work.match(found.password if found else "", password)
        except TooManyAttemptsError:
            self._attempts.undo(key, address)
            raise
        if found is None or not matches:
            raise SignInRefusedError("name or password is wrong")
        if found.account.disabled:
            raise SignInRefusedError("the account is disabled")
        self._attempts.succeeded(key, address)
        if self._work.passwords.is_outdated(found.password):
            return found, await self._work.hash(password)
        return found, found.password
