"""Packs that were seen: as a set of names, also when batches are repeated and the process dies."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from static_engine.lake.lake_errors import LakeError
from static_engine.pipeline.seen_packs import SeenPacks

Names = set[tuple[str, int, int]]
PACKS = st.sets(
    st.tuples(st.sampled_from("ab"), st.integers(1, 2), st.sampled_from([0, 1, 2, 3, 2**40]))
)


def packs(names: Names) -> dict[tuple[str, int], BitMap64]:
    found: dict[tuple[str, int], BitMap64] = {}
    for gateway, epoch, number in names:
        found.setdefault((gateway, epoch), BitMap64()).add(number)
    return found


def names(seen: SeenPacks, batch: int) -> Names:
    return {
        (gateway, epoch, number)
        for (gateway, epoch), numbers in seen.before(batch).items()
        for number in BitMap64.deserialize(numbers)
    }


@given(PACKS, st.lists(st.tuples(PACKS, st.booleans()), max_size=8))
def test_a_batch_sees_what_came_before_it_and_so_does_its_repetition(
    tmp_path_factory: pytest.TempPathFactory, first: Names, batches: list[tuple[Names, bool]]
) -> None:
    path = tmp_path_factory.mktemp("seen") / "seen.db"
    seen = SeenPacks(path)
    seen.begin(packs(first))
    known = set(first)
    for number, (new, is_repeated) in enumerate(batches):
        assert names(seen, number) == known
        seen.add(number, packs(new))
        if is_repeated:  # a crash after it was noted, before Spark knew that it was done
            seen.close()
            seen = SeenPacks(path)
            assert names(seen, number) == known
            seen.add(number, packs(new))
        known |= new
    assert names(seen, len(batches)) == known
    seen.close()


def test_what_is_new_says_so_and_facts_are_kept(tmp_path: Path) -> None:
    seen = SeenPacks(tmp_path / "seen.db")
    assert seen.is_new
    assert seen.fact("origin") is None
    seen.begin({})
    seen.note(origin="a")
    seen.close()
    again = SeenPacks(tmp_path / "seen.db")
    assert not again.is_new
    assert again.fact("origin") == "a"
    again.note(version="99")
    again.close()
    with pytest.raises(LakeError, match="another release"):
        SeenPacks(tmp_path / "seen.db")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "seen.db"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(LakeError, match="cannot open"):
        SeenPacks(path)
