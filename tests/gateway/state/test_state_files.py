"""Snapshots and journals on a disk that is cut off, damaged, or full."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.state import state_files
from gateway.state.state_files import Loaded, StateFiles

OPEN: list[StateFiles] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def files(folder: Path, max_bytes: int = 100_000) -> StateFiles:
    OPEN.append(StateFiles(folder / "state", max_bytes))
    return OPEN[-1]


def begun(folder: Path, max_bytes: int = 100_000) -> StateFiles:
    made = files(folder, max_bytes)
    made.load()
    made.next_journal()
    return made


def take(made: StateFiles, content: bytes) -> None:
    generation = made.next_journal()
    assert generation is not None
    assert made.save(content, generation)


def found(folder: Path) -> Loaded:
    return files(folder).load()


def test_a_new_site_has_nothing(tmp_path: Path) -> None:
    assert found(tmp_path) == Loaded()


def test_a_journal_from_the_beginning_needs_no_snapshot(tmp_path: Path) -> None:
    made = begun(tmp_path)
    made.append(b"one")
    made.append(b"")
    assert found(tmp_path) == Loaded(None, [b"one", b""])


def test_a_snapshot_takes_the_place_of_the_journals_before_it(tmp_path: Path) -> None:
    made = begun(tmp_path)
    made.append(b"one")
    take(made, b"state")
    made.append(b"two")
    made.count_again()
    assert found(tmp_path) == Loaded(b"state", [b"two"])
    assert len(list((tmp_path / "state").glob("journal-*"))) == 1


def test_between_a_snapshot_and_its_writing_nothing_is_lost(tmp_path: Path) -> None:
    made = begun(tmp_path)
    take(made, b"old")
    made.append(b"one")
    generation = made.next_journal()
    made.append(b"two")  # the process dies before `save`
    assert generation is not None
    assert found(tmp_path) == Loaded(b"old", [b"one", b"two"])
    (tmp_path / "state" / ".snapshot.new").write_bytes(b"half")
    assert found(tmp_path).snapshot == b"old"


def test_lives_without_a_snapshot_between_them_add_up(tmp_path: Path) -> None:
    for record in (b"one", b"two", b"three"):
        begun(tmp_path).append(record)
    assert found(tmp_path).records == [b"one", b"two", b"three"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 60))
def test_a_record_that_was_being_written_is_none(tmp_path: Path, cut: int) -> None:
    """Whatever a killed process has written of its last record, those before it count."""
    for old in (tmp_path / "state").glob("*"):
        old.unlink()
    made = begun(tmp_path)
    for number in range(4):
        made.append(bytes([number]) * 5)
    made.close()
    journal = tmp_path / "state" / "journal-1"
    content = journal.read_bytes()
    journal.write_bytes(content[: max(len(content) - cut, 0)])
    loaded = found(tmp_path)
    assert loaded.cut == ""
    assert loaded.records == [bytes([n]) * 5 for n in range(4)][: len(loaded.records)]
    assert len(loaded.records) == max(4 - -(-cut // 13), 0)


def test_damage_in_the_middle_is_said_and_what_was_before_counts(tmp_path: Path) -> None:
    made = begun(tmp_path)
    for number in range(4):
        made.append(bytes([number]) * 5)
    journal = tmp_path / "state" / "journal-1"
    content = bytearray(journal.read_bytes())
    content[9 + 13 + 10] ^= 1
    journal.write_bytes(content)
    assert found(tmp_path) == Loaded(None, [bytes(5)], cut="journal 1 is damaged")


@pytest.mark.parametrize("place", [0, 8, 20, 41, 50])
def test_a_damaged_snapshot_is_no_snapshot(tmp_path: Path, place: int) -> None:
    made = begun(tmp_path)
    take(made, b"state")
    snapshot = tmp_path / "state" / "snapshot"
    content = bytearray(snapshot.read_bytes())
    content[place] ^= 1
    snapshot.write_bytes(content)
    loaded = found(tmp_path)
    assert loaded.snapshot is None
    assert "snapshot" in loaded.damage
    made.set_aside()
    assert not snapshot.exists()


def test_a_missing_journal_is_said(tmp_path: Path) -> None:
    made = begun(tmp_path)
    take(made, b"state")
    (tmp_path / "state" / "journal-2").unlink()
    assert found(tmp_path).cut.startswith("journal 2")


def test_a_journal_at_its_bound_is_marked_and_the_next_snapshot_makes_it_good(
    tmp_path: Path,
) -> None:
    made = begun(tmp_path, 200)
    for _ in range(20):
        made.append(b"x" * 20)
    assert "max_bytes" in made.problem
    assert made.wants_snapshot
    loaded = found(tmp_path)
    assert "was cut" in loaded.cut
    assert 0 < len(loaded.records) < 20
    take(made, b"state")
    made.count_again()
    made.append(b"after")
    assert made.problem == ""
    assert found(tmp_path) == Loaded(b"state", [b"after"])
    size = sum(path.stat().st_size for path in (tmp_path / "state").iterdir())
    assert size < 400


def test_a_full_disk_damages_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = begun(tmp_path)
    take(made, b"state")
    made.append(b"one")

    def full(file: object, content: bytes) -> None:
        if len(content) > 1:  # changing a byte takes no room
            file.write(content[: len(content) // 2])  # type: ignore[attr-defined]
            raise OSError(28, "No space left on device")
        file.write(content)  # type: ignore[attr-defined]

    with monkeypatch.context() as patch:
        patch.setattr(state_files, "_write", full)
        made.append(b"two, of which half is written")
        assert "No space left" in made.problem
        made.append(b"three")
        assert made.next_journal() is None
    loaded = found(tmp_path)
    assert (loaded.snapshot, loaded.records) == (b"state", [b"one"])
    assert "was cut" in loaded.cut
    take(made, b"new")  # there is room again
    assert found(tmp_path) == Loaded(b"new", [])


def test_a_life_that_could_not_begin_a_journal_is_missing_in_the_former_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path).append(b"one")

    def full(file: object, content: bytes) -> None:
        if len(content) > 1:  # changing a byte takes no room
            raise OSError(28, "No space left on device")
        file.write(content)  # type: ignore[attr-defined]

    second = files(tmp_path)
    second.load()
    with monkeypatch.context() as patch:
        patch.setattr(state_files, "_write", full)
        assert second.next_journal() is None
    second.append(b"what nobody will find")
    loaded = found(tmp_path)
    assert loaded.records == [b"one"]
    assert "was cut" in loaded.cut


def test_a_snapshot_beyond_its_bound_leaves_the_old_one(tmp_path: Path) -> None:
    made = begun(tmp_path, 1000)
    take(made, b"state")
    generation = made.next_journal()
    assert generation is not None
    assert not made.save(b"x" * 1001, generation)
    assert "max_bytes" in made.problem
    assert found(tmp_path).snapshot == b"state"


def test_a_folder_that_cannot_be_made_is_a_problem_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    made = begun(tmp_path)
    made.append(b"one")
    assert not made.save(b"state", 1)
    assert made.problem


def test_whether_all_is_held_is_known(tmp_path: Path) -> None:
    made = files(tmp_path, max_bytes=200)
    assert not made.holds_all, "there is no journal yet"
    made.next_journal()
    made.append(b"one")
    assert made.holds_all
    made.append(bytes(200))
    assert not made.holds_all, "the journal has reached its bound"
    generation = made.next_journal()
    assert generation is not None
    assert not made.holds_all, "the snapshot that makes it good is not written yet"
    assert made.save(b"state", generation)
    assert made.holds_all
