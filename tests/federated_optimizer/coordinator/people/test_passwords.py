"""Hashes of passwords: right, and never many at a time."""

import asyncio
import threading

import pytest
from argon2 import PasswordHasher
from typing_extensions import override

from federated_optimizer.coordinator.contract.people_model import TooManyAttemptsError
from federated_optimizer.coordinator.people.passwords import (
    AT_ONCE,
    WAITING,
    Passwords,
    PasswordWork,
    default_hasher,
)
from tests.federated_optimizer.coordinator.people.office import QUICK


def test_a_hash_is_argon2id_that_the_library_itself_verifies() -> None:
    kept = Passwords().hash("wörter und so")
    assert kept.startswith("$argon2id$v=19$m=32768,t=3,p=1$")
    assert PasswordHasher().verify(kept, "wörter und so")
    assert not default_hasher().check_needs_rehash(kept)


def test_a_password_matches_however_its_letters_are_composed() -> None:
    passwords = Passwords(QUICK)
    assert passwords.match(passwords.hash("w\u00f6rter"), "wo\u0308rter")
    assert not passwords.match(passwords.hash("w\u00f6rter"), "worter")


@pytest.mark.parametrize("kept", ["", "no hash", "$argon2id$v=19$m=64,t=1,p=1$broken"])
def test_what_is_no_hash_matches_nothing(kept: str) -> None:
    passwords = Passwords(QUICK)
    assert not passwords.match(kept, "nobody's password")


class _Held(Passwords):
    """Compares when it is let, and counts how many do at a time."""

    def __init__(self) -> None:
        super().__init__(QUICK)
        self.let = threading.Event()
        self.lock = threading.Lock()
        self.now = self.most = 0

    @override
    def match(self, kept: str, password: str) -> bool:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.let.wait(20)
        with self.lock:
            self.now -= 1
        return True


def test_a_flood_of_sign_ins_is_refused_and_leaves_the_loop_free() -> None:
    async def scenario() -> None:
        held = _Held()
        work = PasswordWork(held)
        flood = [asyncio.create_task(work.match("", "x")) for _ in range(AT_ONCE + WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyAttemptsError):
            await work.match("", "x")
        # Clients that go away make no room: the threads are busy all the same.
        for task in flood[:5]:
            task.cancel()
        await asyncio.gather(*flood[:5], return_exceptions=True)
        with pytest.raises(TooManyAttemptsError):
            await work.match("", "x")
        held.let.set()
        assert all(await asyncio.gather(*flood[5:]))
        assert held.most <= AT_ONCE
        assert await work.match("", "x")
        work.close()

    asyncio.run(scenario())
