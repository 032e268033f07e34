"""Tombstones remember exactly the dead tokens, in memory bounded by the live ones."""

from hypothesis import given
from hypothesis import strategies as st

from stream_engine.provenance.tokens import TokenSource, epoch_of, site_index_of
from stream_engine.provenance.tombstones import Tombstones

TOKENS = [
    source.fresh()
    for source in [TokenSource(0, 1), TokenSource(0, 2), TokenSource(7, 2)]
    for _ in range(8)
]


@given(st.lists(st.sampled_from(TOKENS)))
def test_exactly_what_was_added(order: list[int]) -> None:
    tombstones = Tombstones()
    for token in order:
        tombstones.add_all([token])
    assert {token for token in TOKENS if token in tombstones} == set(order)
    live = len(TOKENS) - len(set(order))
    assert tombstones.interval_count <= live + 3  # one more than gaps, per origin


def test_a_long_life_takes_little_memory() -> None:
    tombstones, source = Tombstones(), TokenSource(0, 1)
    tokens = [source.fresh() for _ in range(10_000)]
    tombstones.add_all(token for i, token in enumerate(tokens) if i % 1_000)
    assert tombstones.interval_count == 10


def test_epochs_that_are_over() -> None:
    tombstones = Tombstones()
    tombstones.add_all(TOKENS[:4])
    tombstones.add_epochs(0, 1)
    dead = {token for token in TOKENS if token in tombstones}
    assert dead == {t for t in TOKENS if site_index_of(t) == 0 and epoch_of(t) == 1}
    assert tombstones.interval_count == 0
    tombstones.add_epochs(0, 0)
    assert {token for token in TOKENS if token in tombstones} == dead
