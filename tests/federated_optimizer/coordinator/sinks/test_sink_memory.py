"""What sinks remember: written together, kept when the catalog cannot be written."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from federated_optimizer.coordinator.contract.sink_model import DeadLetter
from federated_optimizer.coordinator.sinks.sink_memory import Kind, SinkCounters, SinkMemory
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from streamsql.errors import DeploymentError

LETTER = DeadLetter(("a", 1), ("a", 1, None), 0, "HTTP 500", 3, 7)

Scenario = Callable[[CatalogStore, SinkMemory], Coroutine[None, None, None]]


def run(tmp_path: Path, scenario: Scenario) -> None:
    store = CatalogStore(f"sqlite:///{tmp_path}/catalog.db")
    store.claim(1)
    asyncio.run(scenario(store, SinkMemory(store, store.sink_entries())))
    store.close()


def test_everything_is_there_again(tmp_path: Path) -> None:
    async def scenario(store: CatalogStore, memory: SinkMemory) -> None:
        memory.note_key("s", ("a", 1.5, None, True), known=True)
        memory.note_key("s", ("gone",), known=True)
        memory.note_key("s", ("gone",), known=False)
        memory.note_row("log", 2, ("second",))
        memory.note_row("log", 10, ("third",))
        memory.note_row("log", 1, ("first",))
        memory.note_dead("s", 0, ("a", 1), LETTER)
        memory.note_counters("s", SinkCounters(5, 4, 3, 2))
        memory.note_clearing("home", "b/1", due=True)
        memory.note_clearing("home", "b/2", due=True)
        memory.note_clearing("home", "b/2", due=False)
        await memory.write()
        again = SinkMemory(store, store.sink_entries())
        found = again.of("s")
        assert found.keys == (("a", 1.5, None, True),)
        assert (found.dead, found.counters) == ((LETTER,), SinkCounters(5, 4, 3, 2))
        assert again.of("log").rows == ((1, ("first",)), (2, ("second",)), (10, ("third",)))
        assert again.topics_to_clear() == {"home": ["b/1"]}
        assert again.of("other").keys == ()

    run(tmp_path, scenario)


def test_a_sink_that_is_forgotten_leaves_only_topics_to_empty(tmp_path: Path) -> None:
    async def scenario(store: CatalogStore, memory: SinkMemory) -> None:
        memory.note_key("s", ("a",), known=True)
        memory.note_key("t", ("a",), known=True)
        memory.note_clearing("s", "b/1", due=True)
        await memory.write()
        memory.note_row("s", 1, ("late",))
        await memory.forget("s")
        await memory.write()
        again = SinkMemory(store, store.sink_entries())
        assert (again.of("s").keys, again.of("s").rows) == ((), ())
        assert again.of("t").keys == (("a",),)
        assert again.topics_to_clear() == {"s": ["b/1"]}

    run(tmp_path, scenario)


def test_rows_that_come_and_go_before_they_are_written_take_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(store: CatalogStore, memory: SinkMemory) -> None:
        memory.note_row("s", 1, ("kept",))
        await memory.write()
        sizes: list[int] = []

        def full(changed: dict[tuple[str, str, str], bytes | None]) -> None:
            sizes.append(len(changed))
            raise DeploymentError("the disk is full")

        put = store.put_sink_entries
        monkeypatch.setattr(store, "put_sink_entries", full)
        for number in range(2, 1_000):
            memory.note_row("s", number, ("x",))
            memory.note_row("s", number, None)
        memory.note_row("s", 1, None)
        memory.note_row("s", 1_000, ("last",))
        with pytest.raises(DeploymentError):
            await memory.write()
        assert sizes == [2]
        monkeypatch.setattr(store, "put_sink_entries", put)
        await memory.write()
        again = SinkMemory(store, store.sink_entries())
        assert again.of("s").rows == ((1_000, ("last",)),)

    run(tmp_path, scenario)


def test_a_row_that_goes_while_it_is_written_is_gone_with_the_next_write(tmp_path: Path) -> None:
    async def scenario(store: CatalogStore, memory: SinkMemory) -> None:
        memory.note_row("s", 1, ("x",))
        writing = asyncio.create_task(memory.write())
        await asyncio.sleep(0)
        memory.note_row("s", 1, None)
        await writing
        await memory.write()
        again = SinkMemory(store, store.sink_entries())
        assert again.of("s").rows == ()

    run(tmp_path, scenario)


def test_keys_are_written_before_they_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(store: CatalogStore, memory: SinkMemory) -> None:
        writes: list[int] = []
        put = store.put_sink_entries

        def counted(changed: dict[tuple[str, str, str], bytes | None]) -> None:
            writes.append(len(changed))
            put(changed)

        monkeypatch.setattr(store, "put_sink_entries", counted)
        await memory.write_keys("s")
        assert writes == []
        memory.note_counters("s", SinkCounters())
        await memory.write_keys("s")
        assert writes == []  # counters can wait
        memory.note_key("s", ("a",), known=True)
        memory.note_key("t", ("b",), known=True)
        # Whoever writes first writes for the others, too.
        await asyncio.gather(memory.write_keys("s"), memory.write_keys("t"))
        assert writes == [3]
        await memory.write_keys("s")
        assert writes == [3]

    run(tmp_path, scenario)


def test_what_cannot_be_written_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(store: CatalogStore, memory: SinkMemory) -> None:
        memory.note_key("s", ("a",), known=True)
        with monkeypatch.context() as broken:
            broken.setattr(store, "put_sink_entries", _refuse)
            with pytest.raises(DeploymentError):
                await memory.write_keys("s")
        memory.note_counters("s", SinkCounters(1))
        await memory.write()
        assert set(store.sink_entries()) == {Kind.KEY, Kind.STATE}

    run(tmp_path, scenario)


def test_what_cannot_be_read_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    async def scenario(store: CatalogStore, memory: SinkMemory) -> None:
        memory.note_key("s", ("a",), known=True)
        memory.note_row("s", 3, ("a",))
        await memory.write()
        store.put_sink_entries({("s", Kind.DEAD, "1"): b"\xc1", ("s", Kind.ROW, "x"): b"\x90"})
        before = store.sink_entries()
        again = SinkMemory(store, before)
        found = again.of("s")
        assert (found.keys, found.rows) == ((("a",),), ((3, ("a",)),))
        first, second = found.unreadable
        assert first.startswith("dead 1: ")
        assert second == "row x: no number"
        again.note_row("s", 3, None)
        again.note_counters("s", SinkCounters(9))
        again.note_key("t", ("a",), known=True)
        await again.write()
        after = store.sink_entries()
        assert {kind: of["s"] for kind, of in after.items() if "s" in of} == {
            kind: of["s"] for kind, of in before.items()
        }
        await again.forget("s")
        again.note_counters("s", SinkCounters(9))
        await again.write()
        assert again.of("s").unreadable == ()
        assert list(store.sink_entries()[Kind.STATE]) == ["s"]

    run(tmp_path, scenario)


def _refuse(_changed: object) -> None:
    raise DeploymentError("the disk is full")
