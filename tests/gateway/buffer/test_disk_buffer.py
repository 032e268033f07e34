"""The disk buffer: bounded, oldest first, and harmless when the disk is full or the file broken."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gateway.buffer.disk_buffer import AGE_CHECK_SECONDS, RETRY_SECONDS, DiskBuffer
from gateway.gateway_settings import BufferSettings
from gateway.testing import fill_disk
from tests.settable_clock import SettableClock

HOUR = 3600.0


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(1_000_000.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "buffer.sqlite"


@pytest.fixture
def buffer(path: Path, clock: SettableClock) -> Iterator[DiskBuffer]:
    made = DiskBuffer(path, BufferSettings(max_bytes=1_000, max_hours=1.0), clock)
    yield made
    made.close()


def contents(buffer: DiskBuffer) -> list[bytes]:
    return [payload for _, _, payload in buffer.oldest(10_000)]


def test_payloads_come_oldest_first_with_their_stream(buffer: DiskBuffer) -> None:
    numbers = [buffer.append("s", b"one"), buffer.append("t", b"two"), buffer.append("s", b"three")]
    assert buffer.oldest(2) == [(numbers[0], "s", b"one"), (numbers[1], "t", b"two")]
    assert buffer.oldest(2, after=numbers[0] or 0) == [
        (numbers[1], "t", b"two"),
        (numbers[2], "s", b"three"),
    ]


def test_what_is_stored_survives_the_process(path: Path, buffer: DiskBuffer) -> None:
    buffer.append("s", b"kept")
    # Not closed: as after kill -9, another connection finds what was committed.
    again = DiskBuffer(path, BufferSettings())
    assert contents(again) == [b"kept"]
    assert (again.state().stored, again.state().bytes) == (1, 4)
    again.close()


def test_beyond_the_bytes_the_oldest_leave_and_are_counted(buffer: DiskBuffer) -> None:
    for number in range(12):
        assert buffer.append("s", bytes([number]) * 100) is not None
    assert contents(buffer) == [bytes([number]) * 100 for number in range(2, 12)]
    assert buffer.state().dropped == 2
    assert buffer.state().bytes == 1_000


def test_no_more_leaves_than_must(buffer: DiskBuffer) -> None:
    for size in (10, 500, 490):
        buffer.append("s", bytes(size))
    buffer.append("s", b"x" * 5)
    assert [len(payload) for payload in contents(buffer)] == [500, 490, 5]


def test_a_payload_larger_than_the_bound_is_dropped(buffer: DiskBuffer) -> None:
    buffer.append("s", b"small")
    buffer.append("s", bytes(1_001))
    assert contents(buffer) == []
    assert buffer.state().dropped == 2
    assert buffer.state().bytes == 0


def test_what_is_too_old_leaves_and_is_counted(buffer: DiskBuffer, clock: SettableClock) -> None:
    buffer.append("s", b"old")
    clock.now += 0.6 * HOUR
    buffer.append("s", b"young")
    clock.now += 0.6 * HOUR
    buffer.append("s", b"new")
    assert contents(buffer) == [b"young", b"new"]
    assert buffer.state().dropped == 1


def test_a_clock_set_back_does_not_stop_ageing(buffer: DiskBuffer, clock: SettableClock) -> None:
    clock.now += 10 * HOUR
    buffer.append("s", b"a")
    clock.now -= 9 * HOUR
    buffer.append("s", b"b")
    clock.now += 2 * HOUR
    buffer.append("s", b"c")
    assert contents(buffer) == [b"a", b"c"]


def test_the_rate_tells_for_how_long_the_rest_lasts(
    buffer: DiskBuffer, clock: SettableClock
) -> None:
    assert buffer.state().hours_left is None
    buffer.append("s", bytes(100))
    clock.now += 100.0
    hours = buffer.state().hours_left
    assert hours is not None
    assert hours == pytest.approx(900 / 1.0 / HOUR)


def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path: Path) -> None:
    path.write_bytes(b"this is no database" * 500)
    buffer = DiskBuffer(path, BufferSettings())
    assert buffer.append("s", b"new") is not None
    assert "set aside" in buffer.problem
    assert path.with_suffix(".broken").read_bytes().startswith(b"this is no database")
    buffer.close()


def test_a_file_damaged_while_in_use_is_set_aside_and_no_number_is_used_twice(path: Path) -> None:
    buffer = DiskBuffer(path, BufferSettings())
    numbers = [buffer.append("s", bytes(20_000)) for _ in range(50)]
    assert buffer._database is not None
    buffer._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    buffer._database.execute("PRAGMA shrink_memory")  # forget what is cached
    after = [buffer.append("s", b"x") for _ in range(3)]
    assert after[-1] is not None, "at the latest the second try finds a new file"
    assert not set(after) & set(numbers)
    assert buffer.state().dropped >= 50
    assert path.with_suffix(".broken").exists()
    buffer.close()


def test_a_full_disk_refuses_and_recovers(path: Path) -> None:
    buffer = DiskBuffer(path, BufferSettings(max_bytes=100_000))
    kept = buffer.append("s", bytes(100))
    assert buffer._database is not None
    # As full as a disk can be: not a page more.
    (pages,) = buffer._database.execute("PRAGMA page_count").fetchone()
    buffer._database.execute(f"PRAGMA max_page_count = {pages}")
    refused = [buffer.append("s", bytes(900)) for _ in range(20)]
    assert None in refused
    assert "full" in buffer.problem
    assert buffer.oldest(1)[0][0] == kept, "what was stored is still there"
    buffer._database.execute("PRAGMA max_page_count = 100000")
    assert buffer.append("s", b"again") is not None
    assert buffer.problem == ""
    assert buffer.delete([kept or 0])
    stored = sqlite3.connect(path)
    assert stored.execute("SELECT count(*) FROM pack").fetchone()[0] == buffer.state().stored
    stored.close()
    buffer.close()


def test_a_real_disk_that_fills_and_is_cleared(small_disk: Path, clock: SettableClock) -> None:
    other = small_disk / "other"
    buffer = DiskBuffer(small_disk / "buffer.sqlite", BufferSettings(), clock)
    numbers = [buffer.append("s", bytes(1_000)) for _ in range(10)]
    assert None not in numbers
    fill_disk(other)
    refused = [buffer.append("s", bytes(30_000)) for _ in range(5)]
    assert refused == [None] * 5
    assert "readings are not buffered" in buffer.problem
    assert [n for n, *_ in buffer.oldest(100)] == numbers, "what was stored is still there"
    buffer.close()
    full = DiskBuffer(small_disk / "buffer.sqlite", BufferSettings(), clock)  # a start on it
    full.append("s", bytes(30_000))
    assert "readings are not buffered" in full.problem
    assert not (small_disk / "buffer.broken").exists(), "full is not damaged"
    other.unlink()
    clock.now += RETRY_SECONDS
    assert full.append("s", b"again") is not None
    assert full.problem == ""
    assert [n for n, *_ in full.oldest(100)][:10] == numbers
    full.close()


def test_a_directory_that_cannot_be_written_does_not_stop_anything(
    tmp_path: Path, clock: SettableClock
) -> None:
    path = tmp_path / "no" / "buffer.sqlite"
    buffer = DiskBuffer(path, BufferSettings(), clock)
    assert "disk buffer" in buffer.problem
    assert buffer.append("s", b"x") is None
    assert buffer.oldest(1) == []
    assert not buffer.delete([1])
    path.parent.mkdir()
    assert buffer.append("s", b"x") is None, "not tried at every reading"
    clock.now += RETRY_SECONDS
    assert buffer.append("s", b"x") is not None
    assert buffer.problem == ""
    buffer.close()


def test_after_closing_nothing_is_opened_again(buffer: DiskBuffer) -> None:
    buffer.close()
    assert buffer.append("s", b"x") is None
    assert buffer._database is None


def test_the_file_does_not_grow_beyond_its_bound(path: Path) -> None:
    settings = BufferSettings(max_bytes=2_000_000)
    buffer = DiskBuffer(path, settings)
    for number in range(600):
        assert buffer.append("s", bytes(20_000)) is not None, number
    assert buffer.state().bytes <= settings.max_bytes
    files = sum(file.stat().st_size for file in path.parent.iterdir())
    assert files < 4 * settings.max_bytes + 8_000_000
    buffer.close()


class AgainstAModel(RuleBasedStateMachine):
    """Any sequence of appends, deletes, time and restarts equals a list with the same bounds."""

    folder: Path
    number = 0

    def __init__(self) -> None:
        super().__init__()
        AgainstAModel.number += 1
        self.path = self.folder / f"{AgainstAModel.number}.sqlite"
        self.clock = SettableClock(1_000_000.0)
        self.settings = BufferSettings(max_bytes=50, max_hours=1.0)
        self.buffer = DiskBuffer(self.path, self.settings, self.clock)
        self.model: list[tuple[int, float, bytes]] = []
        self.dropped = 0

    def teardown(self) -> None:
        self.buffer.close()

    @rule(size=st.integers(0, 30))
    def append(self, size: int) -> None:
        self.clock.now += AGE_CHECK_SECONDS
        number = self.buffer.append("s", bytes(size))
        assert number is not None
        self.model.append((number, self.clock.now, bytes(size)))
        while sum(len(p) for *_, p in self.model) > self.settings.max_bytes:
            self.drop()
        while self.model[0][1] < self.clock.now - HOUR:
            self.drop()

    def drop(self) -> None:
        del self.model[0]
        self.dropped += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from([n for n, *_ in self.model]), max_size=3))
        assert self.buffer.delete(chosen)
        self.model = [entry for entry in self.model if entry[0] not in chosen]

    @rule(seconds=st.floats(0, 3_000))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def restart(self) -> None:
        self.buffer.close()
        self.buffer = DiskBuffer(self.path, self.settings, self.clock)
        self.dropped = 0

    @invariant()
    def equal(self) -> None:
        stored = [(number, payload) for number, _, payload in self.buffer.oldest(1_000)]
        assert stored == [(number, payload) for number, _, payload in self.model]
        state = self.buffer.state()
        assert (state.stored, state.dropped) == (len(self.model), self.dropped)
        assert state.bytes == sum(len(payload) for *_, payload in self.model)
        assert len(self.buffer) == len(self.model)


def test_any_sequence_equals_a_bounded_list(tmp_path: Path) -> None:
    AgainstAModel.folder = tmp_path
    run_state_machine_as_test(
        AgainstAModel, settings=hypothesis_settings(max_examples=30, stateful_step_count=20)
    )
