"""Who is asked for a snapshot, with growing pauses."""

from itertools import pairwise

from host.resync_requests import FIRST_PAUSE, LONGEST_PAUSE, ResyncRequests

CHANNEL = ("q", "gw-1")


def test_a_waiting_channel_is_asked_for_at_once_and_again_with_growing_pauses() -> None:
    requests = ResyncRequests()
    asked = [now / 10 for now in range(3_000) if requests.due([CHANNEL], now / 10)]
    pauses = [round(b - a, 6) for a, b in pairwise(asked)]
    assert asked[0] == 0.0
    assert pauses == [FIRST_PAUSE, 2.0, 4.0, 8.0, 16.0, 32.0] + [LONGEST_PAUSE] * len(pauses[6:])


def test_a_channel_in_step_is_not_asked_for() -> None:
    requests = ResyncRequests()
    assert requests.due([CHANNEL], 0.0) == [CHANNEL]
    assert requests.due([], 5.0) == []
    assert requests.next_due([]) is None


def test_a_channel_that_falls_out_of_step_all_the_time_is_asked_for_once_a_second() -> None:
    requests = ResyncRequests()
    asked = 0
    for step in range(1_000):  # waits at every other look, for ten seconds
        now = step / 100
        asked += len(requests.due([CHANNEL] if step % 2 else [], now))
    assert 1 <= asked <= 11


def test_wanted_channels_are_asked_for_even_if_they_seem_in_step() -> None:
    requests = ResyncRequests()
    requests.want({CHANNEL, ("q", "gw-2")})
    assert requests.next_due([]) == 0.0
    assert requests.due([], 0.0) == [CHANNEL, ("q", "gw-2")]
    assert requests.due([], 20.0) == []


def test_a_channel_wanted_right_after_it_was_asked_for_waits_for_its_turn() -> None:
    requests = ResyncRequests()
    requests.due([CHANNEL], 0.0)
    requests.want({CHANNEL})
    assert requests.due([], 0.5) == []
    assert requests.next_due([]) == FIRST_PAUSE
    assert requests.due([], FIRST_PAUSE) == [CHANNEL]


def test_nothing_is_remembered_of_channels_that_are_no_more() -> None:
    requests = ResyncRequests()
    for number in range(100):
        requests.due([(f"q{number}", "gw-1")], float(number * 10))
    assert len(requests._asked) <= 2


def test_a_receiver_that_a_snapshot_throws_out_of_step_gets_few() -> None:
    """Each snapshot takes five seconds to arrive, and a second later something is missed again."""
    requests = ResyncRequests()
    arrives, in_step_until, asked = 0.0, -1.0, 0
    for tenth in range(6_000):
        now = tenth / 10
        if requests.due([] if arrives <= now < in_step_until else [CHANNEL], now):
            asked += 1
            if arrives < now:
                arrives, in_step_until = now + 5.0, now + 6.0
    assert asked <= 16  # 1, 2, 4, 8, 16, 32, then 60 seconds


def test_who_was_long_in_step_is_asked_at_once_again() -> None:
    requests = ResyncRequests()
    for now in (0.0, 1.0, 3.0):
        assert requests.due([CHANNEL], now) == [CHANNEL]
    for now in range(4, 12):
        requests.due([], float(now))
    assert requests.due([CHANNEL], 12.0) == [CHANNEL]
    assert requests.next_due([CHANNEL]) == 12.0 + FIRST_PAUSE
