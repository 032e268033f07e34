"""Wakeups against a plain dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from stream_engine.state.wakeups import MOST_STALE, Wakeups

moves = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.none() | st.integers(0, 30)) | st.integers(0, 30),
    max_size=300,
)


@given(moves)
def test_a_dictionary_says_the_same(steps: list[tuple[str, int | None] | int]) -> None:
    wakeups: Wakeups[str] = Wakeups()
    times: dict[str, int] = {}
    for step in steps:
        if isinstance(step, int):
            due = {key: time for key, time in times.items() if time <= step}
            found = wakeups.take_due(step)
            assert sorted(found) == sorted(due)
            assert [due[key] for key in found] == sorted(due.values())
            times = {key: time for key, time in times.items() if time > step}
        else:
            key, time = step
            wakeups.set(key, time)
            times.pop(key, None)
            if time is not None:
                times[key] = time
        assert wakeups.earliest == min(times.values(), default=None)


def test_times_that_are_put_off_again_and_again_take_no_memory() -> None:
    wakeups: Wakeups[int] = Wakeups()
    wakeups.set(-1, 0)
    for time in range(10_000):
        wakeups.set(time % 10, 10_000 - time if time % 2 else time + 1)
        assert len(wakeups._heap) <= 2 * 11 + MOST_STALE + 1
    assert wakeups.earliest == 0
