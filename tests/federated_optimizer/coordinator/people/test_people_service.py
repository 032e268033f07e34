"""Accounts, sessions and tokens as the console asks for them."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from federated_optimizer.coordinator.contract.audit_model import Outcome
from federated_optimizer.coordinator.contract.people_model import (
    PeopleError,
    SignInRefusedError,
    TooManyAttemptsError,
    UnknownPersonError,
)
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.people.account_rules import MAX_SESSIONS, MAX_TOKENS
from federated_optimizer.coordinator.people.people_service import People
from tests.federated_optimizer.coordinator.people.office import GOOD, HOME, ROOT, Office, admitted

DAY, HOUR = 86_400.0, 3_600.0


async def staffed(people: People) -> None:
    """Add an administrator and an analyst."""
    await people.add_account("root", Role.ADMINISTRATOR, GOOD, None)
    await people.add_account("Ann", Role.ANALYST, GOOD, ROOT)


def test_a_person_signs_in_and_out(office: Office) -> None:
    async def scenario(people: People) -> None:
        assert not people.has_accounts
        await staffed(people)
        assert people.has_accounts
        signed_in = await people.sign_in(" ANN", GOOD, HOME)
        admission = admitted(people, signed_in.secret)
        assert admission.principal == Principal("ann", Role.ANALYST) == signed_in.principal
        assert people.account("ann").last_sign_in == int(office.now * 1e6)
        assert people.admit(signed_in.secret + "x") is people.admit("") is None
        await people.sign_out(signed_in.secret, admission.principal)
        assert people.admit(signed_in.secret) is None
        assert admission.ended.is_set()

    office.run(scenario)
    assert [entry[:3] for entry in office.noted] == [
        ("", "add account", "root"),
        ("root", "add account", "ann"),
        ("ann", "sign in", "ann"),
        ("ann", "sign out", "ann"),
    ]


def test_a_wrong_password_and_an_unknown_name_are_told_the_same(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        said = []
        for name, password in ((GOOD, GOOD), ("ann", GOOD + "!"), ("ann", "x" * 100_000)):
            with pytest.raises(SignInRefusedError) as refused:
                await people.sign_in(name, password, HOME)
            said.append(refused.value.message)
        assert set(said) == {"name or password is wrong"}

    office.run(scenario)
    assert office.noted[-1] == ("", "sign in", "ann", Outcome.REFUSED)
    assert office.details[-1] == f"name or password is wrong {HOME}"
    assert GOOD not in str(office.details)


def test_secrets_and_passwords_are_not_in_the_catalog(office: Office, tmp_path: Path) -> None:
    secrets: list[str] = []

    async def scenario(people: People) -> None:
        await staffed(people)
        secrets.append((await people.sign_in("ann", GOOD, HOME)).secret)
        secrets.append((await people.create_token("ann", "script", ROOT)).secret)

    office.run(scenario)
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert "ann" in dump
    assert "$argon2id$" in dump
    for secret in (*secrets, secrets[1].removeprefix("pando_"), GOOD):
        assert secret not in dump
    assert (tmp_path / "catalog.db").stat().st_mode & 0o077 == 0


def test_sessions_end_by_age_and_without_use(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        idle = (await people.sign_in("ann", GOOD, HOME)).secret
        busy = (await people.sign_in("ann", GOOD, HOME)).secret
        reading = (await people.sign_in("ann", GOOD, HOME)).secret
        admitted(people, reading).readers += 1  # an open page of events
        for _ in range(18):
            office.now += HOUR / 2
            assert people.admit(busy) is not None
            await people.look()
        assert people.admit(idle) is None
        ended = admitted(people, reading).ended
        assert not ended.is_set()
        office.now += HOUR + 1  # ten hours in all
        await people.look()
        assert ended.is_set()
        assert people.admit(busy) is people.admit(reading) is None

    office.run(scenario)


def test_sessions_and_tokens_survive_a_restart(office: Office) -> None:
    kept: list[str] = []

    async def first(people: People) -> None:
        await staffed(people)
        kept.append((await people.sign_in("ann", GOOD, HOME)).secret)
        kept.append((await people.create_token("ann", "script", ROOT, days=1)).secret)
        office.now += HOUR / 2
        assert people.admit(kept[0]) is not None
        await people.look()  # stores that it is in use

    async def second(people: People) -> None:
        office.now += HOUR * 0.6
        assert [admitted(people, secret).principal.token for secret in kept] == ["", "script"]
        office.now += DAY
        assert [people.admit(secret) for secret in kept] == [None, None]
        await people.look()
        await people.look()

    office.run(first)
    office.run(second)


@pytest.mark.parametrize(
    "change",
    [
        lambda people: people.change_account("ann", ROOT, disabled=True),
        lambda people: people.remove_account("ann", ROOT),
        lambda people: people.change_account("ann", ROOT, role=Role.VIEWER),
    ],
    ids=["disabled", "removed", "role"],
)
def test_what_an_account_has_open_ends_when_it_changes(
    office: Office, change: Callable[[People], Awaitable[object]]
) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        session = (await people.sign_in("ann", GOOD, HOME)).secret
        token = (await people.create_token("ann", "script", ROOT)).secret
        before = [admitted(people, secret) for secret in (session, token)]
        others = admitted(people, (await people.sign_in("root", GOOD, HOME)).secret)
        await change(people)
        assert all(admission.ended.is_set() for admission in before)
        assert not others.ended.is_set()
        after = [people.admit(secret) for secret in (session, token)]
        roles = [found.principal.role for found in after if found is not None]
        assert roles in ([], [Role.VIEWER, Role.VIEWER])

    office.run(scenario)


def test_a_disabled_account_may_sign_in_when_it_is_enabled_again(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        token = (await people.create_token("ann", "script", ROOT)).secret
        await people.change_account("ann", ROOT, disabled=True)
        assert people.admit(token) is None
        with pytest.raises(SignInRefusedError, match="is disabled"):
            await people.sign_in("ann", GOOD, HOME)
        with pytest.raises(SignInRefusedError, match="is wrong"):
            await people.sign_in("ann", "another password", HOME)
        await people.change_account("ann", ROOT, disabled=False)
        assert people.admit(token) is not None
        await people.sign_in("ann", GOOD, HOME)

    office.run(scenario)


def test_there_is_always_an_administrator(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        for attempt in (
            people.change_account("root", ROOT, role=Role.OPERATOR),
            people.change_account("root", ROOT, disabled=True),
            people.remove_account("root", ROOT),
        ):
            with pytest.raises(PeopleError) as refused:
                await attempt
            assert refused.value.code == "last_administrator"
        await people.change_account("ann", ROOT, role=Role.ADMINISTRATOR)
        await people.remove_account("root", ROOT)
        assert [account.name for account in people.accounts()] == ["ann"]

    office.run(scenario)


def test_a_new_password_ends_the_other_sessions(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        mine, other = [(await people.sign_in("ann", GOOD, HOME)).secret for _ in range(2)]
        await people.set_password("ann", "another long one", ROOT, keep=mine)
        assert people.admit(mine) is not None
        assert people.admit(other) is None
        with pytest.raises(SignInRefusedError):
            await people.sign_in("ann", GOOD, HOME)
        await people.sign_in("ann", "another long one", HOME)

    office.run(scenario)


@pytest.mark.parametrize(
    "password", ["short", "aaaaaaaaaaaa", "abababababab", "ann-lee123", "é" * 300]
)
def test_weak_passwords_are_refused(office: Office, password: str) -> None:
    async def scenario(people: People) -> None:
        with pytest.raises(PeopleError) as refused:
            await people.add_account("ann-lee", Role.VIEWER, password, ROOT)
        assert refused.value.code == "weak_password"
        assert password not in refused.value.report

    office.run(scenario)


@pytest.mark.parametrize(
    "name", ["", "a b", "ann\n", "<b>", "-x", "a" * 65, "local", "viewer", "ä"]
)
def test_names_that_cannot_be_are_refused(office: Office, name: str) -> None:
    async def scenario(people: People) -> None:
        if name == "ann\n":  # as typed into a form
            made = await people.add_account(name, Role.ADMINISTRATOR, GOOD, ROOT)
            assert made.name == "ann"
            return
        with pytest.raises(PeopleError):
            await people.add_account(name, Role.VIEWER, GOOD, ROOT)

    office.run(scenario)


def test_a_name_is_taken_in_any_case(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        with pytest.raises(PeopleError) as refused:
            await people.add_account("ANN", Role.VIEWER, GOOD, ROOT)
        assert refused.value.code == "account_exists"

    office.run(scenario)


def test_a_token_never_may_more_than_its_account(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        with pytest.raises(PeopleError, match="cannot be operator"):
            await people.create_token("ann", "script", ROOT, role=Role.OPERATOR)
        low = await people.create_token(
            "ann", "script", ROOT, role=Role.VIEWER, sources=("Temperature", "door")
        )
        full = await people.create_token("ann", "other", ROOT)
        principal = admitted(people, low.secret).principal
        assert principal == Principal(
            "ann", Role.VIEWER, token="script", sources=("door", "temperature")
        )
        assert admitted(people, full.secret).principal.role == Role.ANALYST
        await people.change_account("ann", ROOT, role=Role.VIEWER)
        assert admitted(people, full.secret).principal.role == Role.VIEWER
        await people.change_account("ann", ROOT, role=Role.OPERATOR)
        assert admitted(people, full.secret).principal.role == Role.ANALYST

    office.run(scenario)


def test_tokens_expire_and_are_revoked(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        short = await people.create_token("ann", "short", ROOT, days=0.5)
        long = await people.create_token("ann", "long", ROOT)
        ending = admitted(people, short.secret).ended
        office.now += DAY
        await people.look()
        assert ending.is_set()
        assert people.admit(short.secret) is None
        admission = admitted(people, long.secret)
        await people.revoke_token(long.token.id, ROOT)
        assert admission.ended.is_set()
        with pytest.raises(UnknownPersonError):
            await people.revoke_token(long.token.id, ROOT)
        assert [token.label for token in people.tokens("ann")] == ["short"]

    office.run(scenario)


def test_what_another_process_changes_is_noticed_within_a_second(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        admission = admitted(people, (await people.sign_in("ann", GOOD, HOME)).secret)
        other = await office.open()
        await other.change_account("ann", ROOT, disabled=True)
        await other.add_account("bob", Role.VIEWER, GOOD, ROOT)
        await other.close()
        await asyncio.wait_for(admission.ended.wait(), 1.5)
        assert people.account("bob") is not None

    office.run(scenario, looking=True)


def test_sessions_and_tokens_of_an_account_are_bounded(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        secrets = []
        for _ in range(MAX_SESSIONS + 2):
            office.now += 1
            secrets.append((await people.sign_in("ann", GOOD, HOME)).secret)
        admits = [people.admit(secret) is not None for secret in secrets]
        assert admits == [False] * 2 + [True] * MAX_SESSIONS
        for number in range(MAX_TOKENS):
            await people.create_token("ann", f"n {number}", ROOT)
        with pytest.raises(PeopleError, match="revoke some"):
            await people.create_token("ann", "one more", ROOT)
        await people.create_token("root", "mine", ROOT)

    office.run(scenario)


def test_who_guesses_waits_and_the_owner_elsewhere_does_not(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        await people.sign_in("ann", GOOD, "192.0.2.9")
        for _ in range(5):
            with pytest.raises(SignInRefusedError):
                await people.sign_in("ann", "a wrong password", HOME)
        with pytest.raises(TooManyAttemptsError) as refused:
            await people.sign_in("ann", GOOD, HOME)
        assert 0 < refused.value.retry_after <= 1
        await people.sign_in("ann", GOOD, "192.0.2.9")
        office.now += 1.1
        await people.sign_in("ann", GOOD, HOME)

    office.run(scenario)
    assert ("", "sign in", "ann", Outcome.REFUSED) in office.noted


def test_a_providers_people_get_accounts_that_have_no_password(office: Office) -> None:
    async def scenario(people: People) -> None:
        await staffed(people)
        issuer = "https://id.example"
        made = await people.sign_in_external(
            issuer, "17", "Bob@x.example", HOME, first_role=Role.VIEWER
        )
        assert made.principal == Principal("bob@x.example", Role.VIEWER)
        # Another name and role of the same person, and one without a role.
        again = await people.sign_in_external(issuer, "17", "robert", HOME, role=Role.ANALYST)
        assert again.principal == Principal("bob@x.example", Role.ANALYST)
        kept = await people.sign_in_external(issuer, "17", "robert", HOME)
        assert kept.principal == again.principal
        for subject, name, role in (
            ("18", "ann", Role.ADMINISTRATOR),  # a name that is taken is not taken over
            ("18", "carl", None),
            ("18", "<b>", Role.VIEWER),
        ):
            with pytest.raises(SignInRefusedError):
                await people.sign_in_external(issuer, subject, name, HOME, first_role=role)
        with pytest.raises(SignInRefusedError):
            await people.sign_in("bob@x.example", "", HOME)
        with pytest.raises(PeopleError, match="has no password"):
            await people.set_password("bob@x.example", GOOD, ROOT)
        await people.change_account("bob@x.example", ROOT, disabled=True)
        with pytest.raises(SignInRefusedError, match="disabled"):
            await people.sign_in_external(issuer, "17", "bob", HOME, role=Role.ANALYST)

    office.run(scenario)
