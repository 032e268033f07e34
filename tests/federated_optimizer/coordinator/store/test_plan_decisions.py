"""Decisions on plans are bounded, survive a restart, and end as given up if they were under way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.store import plan_decisions
from federated_optimizer.coordinator.store.catalog_store import CatalogStore, open_catalog
from federated_optimizer.coordinator.store.plan_decisions import Decision, Decisions, Outcome
from federated_optimizer.coordinator.store.stored_decisions import stored_decisions
from streamsql.catalog.system import SYS_DECISIONS


def opened(folder: Path) -> CatalogStore:
    store, _ = open_catalog(f"sqlite:///{folder}/catalog.db", 0)
    return store


def decision(number: int, **said: Any) -> Decision:
    told: dict[str, Any] = {
        "id": number,
        "ts": number,
        "queries": "q1",
        "run": "q1",
        "reason": "a fact",
        "outcome": Outcome.KEPT,
        "detail": "why",
        "plan_before": "plan 1",
        "plan_after": "plan 1",
        "bytes_before": 12.3456,
        "bytes_after": 1234.5,
    }
    return Decision(**{**told, **said})


def test_decisions_are_found_again_and_the_oldest_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_decisions, "MOST", 3)
    store = opened(tmp_path)
    decisions = Decisions(store, ())
    for _ in range(5):
        decisions.add(decision(decisions.next_id()))
    decisions.change(4, outcome=Outcome.MOVED, switch_bytes=7)
    decisions.change(1, detail="it has gone: nothing happens")
    decisions.add(decision(decisions.next_id(), outcome=Outcome.MOVING))
    asyncio.run(decisions.keep())
    store.close()
    store = opened(tmp_path)
    found = Decisions(store, stored_decisions(store, Decision))
    assert [(each.id, str(each.outcome)) for each in found.all()] == [
        (4, "moved"),
        (5, "kept"),
        (6, "given up"),
    ]
    assert (found.all()[0].switch_bytes, found.next_id()) == (7, 7)
    assert found.all()[-1].detail == "the coordinator was restarted"
    store.close()


def test_a_row_names_a_thousand_queries_and_none_in_part(tmp_path: Path) -> None:
    store = opened(tmp_path)
    ids = [f"q{number}" for number in range(10_000, 11_001)]
    place = SYS_DECISIONS.schema.names.index("queries")
    for number, wanted in ((1_000, ids[:1_000]), (1_001, [*ids[:1_000], "…"])):
        decisions = Decisions(store, [decision(1, queries=", ".join(ids[:number]))])
        assert str(decisions.rows()[0][place]).split(", ") == wanted
    store.close()


def test_moves_are_remembered_longer_than_plans_that_were_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_decisions, "MOST", 4)
    store = opened(tmp_path)
    decisions = Decisions(store, ())
    for outcome in (Outcome.MOVED, Outcome.GIVEN_UP, *[Outcome.KEPT] * 5):
        decisions.add(decision(decisions.next_id(), outcome=outcome))
    assert [each.id for each in decisions.all()] == [1, 2, 6, 7]
    decisions.add(decision(8, outcome=Outcome.MOVED))
    assert [each.id for each in decisions.all()] == [2, 6, 7, 8]
    store.close()


def test_rows_have_the_columns_of_the_table_and_stay_while_nothing_changes(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    decisions = Decisions(store, [decision(1)])
    (row,) = decisions.rows()
    assert decisions.rows() is decisions.rows()
    shown = dict(zip(SYS_DECISIONS.schema.names, row, strict=True))
    assert (shown["outcome"], shown["bytes_before"], shown["bytes_after"]) == ("kept", 12.3, 1230.0)
    assert shown["switch_seconds"] is None
    decisions.change(1, switch_seconds=0.5)
    assert decisions.rows()[0][-1] == 0.5
    store.close()
