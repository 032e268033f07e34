"""How long a state is trusted that was not heard live, and when what was told is repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host import heartbeats
from host.heartbeats import HEARTBEAT_SECONDS, LONGEST_PAUSE, TRUST_SECONDS, Repetitions, Trust

TRUSTED = int(TRUST_SECONDS * 1_000_000)


def test_a_site_may_miss_a_heartbeat() -> None:
    assert TRUST_SECONDS > 2 * HEARTBEAT_SECONDS


def test_what_is_heard_live_is_trusted_for_ever() -> None:
    trust = Trust()
    assert trust.hear(1)
    assert trust.ends is None
    assert not trust.has_ended(10**12)


def test_what_is_retained_is_trusted_for_a_while_and_ends_once() -> None:
    trust = Trust()
    assert trust.hear(1, 100)
    assert not trust.out_of_touch
    assert trust.ends == 100 + TRUSTED
    assert not trust.has_ended(99 + TRUSTED)
    assert trust.has_ended(100 + TRUSTED)
    assert not trust.has_ended(101 + TRUSTED)


def test_what_is_retained_and_comes_again_changes_nothing() -> None:
    doubted, live = Trust(), Trust()
    doubted.hear(1, 100)
    doubted.hear(1, 200)
    assert doubted.doubted_since == 100
    live.hear(1)
    live.hear(1, 200)
    assert live.doubted_since is None


def test_a_new_incarnation_that_is_only_retained_is_doubted() -> None:
    trust = Trust()
    trust.hear(1)
    assert trust.hear(2, 200)
    assert (trust.epoch, trust.doubted_since) == (2, 200)


@pytest.mark.parametrize("live", [False, True])
def test_a_late_will_of_an_earlier_incarnation_is_ignored(live: bool) -> None:
    trust = Trust()
    trust.hear(2, 100)
    assert not trust.hear(1, None if live else 200)
    assert (trust.epoch, trust.doubted_since) == (2, 100)


def test_after_the_broker_was_away_only_a_live_word_helps() -> None:
    trust = Trust()
    trust.hear(1)
    trust.lose_touch(100)
    trust.hear(1, 200)
    assert trust.out_of_touch
    assert trust.ends == 100 + TRUSTED
    assert trust.has_ended(100 + TRUSTED)
    assert trust.out_of_touch
    trust.hear(1)
    assert not trust.out_of_touch


def test_the_time_is_set_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "TRUST_SECONDS", 0.5)
    trust = Trust()
    trust.hear(1, 0)
    assert trust.has_ended(500_000)


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=20))
def test_epochs_never_fall_and_doubt_is_of_the_newest(heard: list[tuple[int, bool]]) -> None:
    trust = Trust()
    newest, since = -1, None
    for moment, (epoch, live) in enumerate(heard):
        assert trust.hear(epoch, None if live else moment) == (epoch >= newest)
        if epoch >= newest:
            since = None if live else (moment if epoch > newest else since)
            newest = epoch
        assert (trust.epoch, trust.doubted_since) == (newest, since)


def test_pauses_between_repetitions_double_until_something_new_is_told() -> None:
    repetitions, at = Repetitions(10.0), []
    repetitions.told(["a"], 0.0)
    for now in range(3_000):
        for name in repetitions.due(float(now)):
            repetitions.repeated(name, float(now))
            at.append(now)
    pauses = [later - earlier for earlier, later in zip([0, *at], at, strict=False)]
    assert pauses == [10, 20, 40, 80, 160, 320, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    repetitions.told(["a", "b"], 3_000.0)
    assert repetitions.due(3_009.9) == []
    assert repetitions.due(3_010.0) == ["a", "b"]
    repetitions.keep({"b": 1})
    assert repetitions.due(9_999.0) == ["b"]
