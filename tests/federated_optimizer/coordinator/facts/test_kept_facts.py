"""Facts outlive the coordinator, and are saved seldom."""

import asyncio
from pathlib import Path

import pytest

from federated_optimizer.coordinator.facts import kept_facts
from federated_optimizer.coordinator.facts.kept_facts import KeptFacts
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.stored_facts import stored_facts
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact
from federated_optimizer.statistics.fact_store import Facts


def test_they_are_saved_once_a_minute_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0]
    monkeypatch.setattr(kept_facts, "monotonic_clock", lambda: now[0])
    monkeypatch.setattr(kept_facts, "MOST_AT_ONCE", 3)
    store = CatalogStore(f"sqlite:///{tmp_path}/catalog.db")
    store.claim(now=0)
    facts = Facts()
    kept = KeptFacts(store, facts)

    async def scenario() -> None:
        for number in range(10):
            subject = Subject(SubjectKind.SOURCE, f"s{number}")
            facts.put(exact(subject, Quantity.ROWS, 1.0, 0, Origin.COUNTED))
        await kept.keep()
        assert stored_facts(store) == ()
        now[0] = kept_facts.SAVE_MICROSECONDS
        await kept.keep()
        assert set(stored_facts(store)) == set(facts)
        facts.discard(Subject(SubjectKind.SOURCE, "s3"), Quantity.ROWS)
        await kept.keep()
        assert len(stored_facts(store)) == 10
        await kept.end()
        assert set(stored_facts(store)) == set(facts)
        CatalogStore(f"sqlite:///{tmp_path}/catalog.db").claim(now=0)
        facts.discard(Subject(SubjectKind.SOURCE, "s4"), Quantity.ROWS)
        await kept.end()  # another coordinator has taken over: the log says so
        assert len(stored_facts(store)) == 9

    asyncio.run(scenario())
    store.close()
