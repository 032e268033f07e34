"""The audit: bounded in number and age, kept over a restart, safe from whoever talks most."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.audit_model import Outcome
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal, Role
from federated_optimizer.coordinator.store import audit_log
from federated_optimizer.coordinator.store.audit_log import AuditLog
from federated_optimizer.coordinator.store.audit_store import store_audit, stored_audit
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from streamsql.errors import DeploymentError

ANN = Principal("ann", Role.ANALYST, token="cron", address="10.0.0.7")


class Time:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now


def opened(folder: Path, time: Time) -> tuple[CatalogStore, AuditLog]:
    store = CatalogStore(f"sqlite:///{folder}/catalog.db")
    store.claim(5)
    return store, AuditLog(store, time, stored_audit(store))


def test_entries_survive_a_restart_and_numbers_go_on(tmp_path: Path) -> None:
    store, log = opened(tmp_path, Time())
    log.note(ANN, "CREATE VIEW", "warm", Outcome.DONE, "CREATE VIEW warm AS …")
    log.note(None, "sign in", "ben", Outcome.REFUSED, "wrong password", address="10.0.0.9")
    asyncio.run(log.keep())
    before = log.entries()
    store.close()
    store, log = opened(tmp_path, Time())
    assert log.entries() == before
    first, second = before
    assert (first.who, first.role, first.token, first.address) == (
        *("ann", "analyst", "cron", "10.0.0.7"),
    )
    assert (second.who, second.role, second.address) == ("", "", "10.0.0.9")
    log.note(LOCAL, "stop", "q1", Outcome.DONE)
    assert [entry.id for entry in log.entries()] == [1, 2, 3]
    store.close()


def test_who_talks_most_pushes_out_only_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_ENTRIES", 10)
    store, log = opened(tmp_path, Time())
    log.note(LOCAL, "GRANT", "temperature", Outcome.DONE)
    log.note(ANN, "CREATE VIEW", "warm", Outcome.DONE)
    for number in range(50):
        log.note(None, "sign in", f"guess {number}", Outcome.REFUSED)
        log.note(ANN, "SELECT", f"secret {number}", Outcome.REFUSED)
        if number % 7 == 0:
            asyncio.run(log.keep())
    kept = log.entries()
    assert len(kept) == 10
    assert [entry.action for entry in kept[:2]] == ["GRANT", "CREATE VIEW"]
    assert {entry.target for entry in kept} >= {"guess 49", "secret 49"}
    asyncio.run(log.keep())
    assert stored_audit(store) == kept
    store.close()


def test_old_entries_go(tmp_path: Path) -> None:
    time = Time()
    store, log = opened(tmp_path, time)
    log.note(LOCAL, "GRANT", "a", Outcome.DONE)
    time.now += audit_log.MAX_DAYS * 86_400_000_000
    log.note(LOCAL, "GRANT", "b", Outcome.DONE)
    asyncio.run(log.keep())
    time.now += 1
    asyncio.run(log.keep())
    assert [entry.target for entry in log.entries()] == ["b"]
    assert [entry.target for entry in stored_audit(store)] == ["b"]
    store.close()


def test_texts_are_cut_and_cleaned(tmp_path: Path) -> None:
    store, log = opened(tmp_path, Time())
    log.note(None, "x" * 5_000, "a\x00b\ud800", Outcome.FAILED, "y" * 5_000, address="z" * 5_000)
    (entry,) = log.entries()
    assert (len(entry.action), len(entry.detail), len(entry.address)) == (60, 1_000, 64)
    assert entry.target == "a\N{REPLACEMENT CHARACTER}b?"
    asyncio.run(log.keep())
    assert stored_audit(store) == (entry,)
    store.close()


def test_what_could_not_be_written_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, log = opened(tmp_path, Time())

    def refuses(*_: Any) -> None:
        raise DeploymentError("the disk is full")

    log.note(LOCAL, "GRANT", "a", Outcome.DONE)
    with monkeypatch.context() as patched:
        patched.setattr(audit_log, "store_audit", refuses)
        with pytest.raises(DeploymentError):
            asyncio.run(log.keep())
    asyncio.run(log.end())
    assert [entry.target for entry in stored_audit(store)] == ["a"]
    store.close()


def test_an_entry_that_is_pushed_out_while_it_is_written_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_ENTRIES", 1)
    store, log = opened(tmp_path, Time())

    def meanwhile(*given: Any) -> None:
        store_audit(*given)
        log.note(LOCAL, "GRANT", "b", Outcome.DONE)

    log.note(LOCAL, "GRANT", "a", Outcome.DONE)
    with monkeypatch.context() as patched:
        patched.setattr(audit_log, "store_audit", meanwhile)
        asyncio.run(log.keep())
    asyncio.run(log.keep())
    assert [entry.target for entry in stored_audit(store)] == ["b"]
    store.close()


def test_the_services_log_has_one_short_line_an_entry(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _store, log = opened(tmp_path, Time())
    with caplog.at_level("INFO", audit_log.__name__):
        log.note(ANN, "CREATE VIEW", "warm", Outcome.DONE, "CREATE VIEW warm AS\nSELECT 1")
        log.note(None, "sign in", "a\nb", Outcome.REFUSED, "x\ny" + "z" * 900, address="10.0.0.9")
    first, second = caplog.messages
    assert first == "audit: 'ann' from 10.0.0.7: CREATE VIEW 'warm' done"
    assert second.startswith(r"audit: 'somebody' from 10.0.0.9: sign in 'a\nb' refused: 'x\nyzz")
    assert len(second) < 300
