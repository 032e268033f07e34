"""What a state found under our id means: table of cases, and two processes never both stay."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.session.identity import Session, Verdict, judge
from streamsql.wire.site_messages import SiteState

OWN = Session(epoch=5, started=100, instance="me")


def state(
    epoch: int, started: int = 0, instance: str = "other", online: bool = False, reason: str = ""
) -> SiteState:
    return SiteState(online, epoch, 0, reason=reason or "lost", instance=instance, started=started)


@pytest.mark.parametrize(
    ("found", "first", "verdict"),
    [
        # Ourselves, and our will after a broken link.
        (state(5, 100, "me", online=True), True, Verdict.OURS),
        (state(5, 100, "me"), False, Verdict.OUTDATED),
        # What our earlier lives have left.
        (state(4), True, Verdict.OUTDATED),
        (state(4), False, Verdict.OUTDATED),
        (state(4, online=True), False, Verdict.OUTDATED),
        # Our directory is new, and the broker remembers more than it.
        (state(5), True, Verdict.PREDECESSOR),
        (state(9), True, Verdict.PREDECESSOR),
        (state(9, online=True), True, Verdict.PREDECESSOR),
        (state(9, reason="stopped"), False, Verdict.PREDECESSOR),
        # Somebody else has come while we were there.
        (state(9), False, Verdict.STOLEN),
        (state(9, online=True), False, Verdict.STOLEN),
        (state(5, 101), False, Verdict.STOLEN),
        (state(5, 99), False, Verdict.OUTDATED),
        # Not written by a gateway: no reason to stop.
        (state(9, instance=""), False, Verdict.PREDECESSOR),
        (state(4, instance=""), False, Verdict.OUTDATED),
    ],
)
def test_what_a_state_means(found: SiteState, first: bool, verdict: Verdict) -> None:
    assert judge(OWN, found, first=first) == verdict


SESSIONS = st.builds(
    Session, st.integers(1, 3), st.integers(0, 2), st.sampled_from(["a", "b", "c"])
)


@given(SESSIONS, SESSIONS, st.booleans(), st.booleans())
def test_of_two_processes_that_find_each_other_exactly_one_stays(
    one: Session, other: Session, online_one: bool, online_other: bool
) -> None:
    assume(one.instance != other.instance)
    seen_by_one = state(other.epoch, other.started, other.instance, online_other)
    seen_by_other = state(one.epoch, one.started, one.instance, online_one)
    verdicts = [judge(one, seen_by_one, first=False), judge(other, seen_by_other, first=False)]
    assert sorted(verdicts) == [Verdict.OUTDATED, Verdict.STOLEN]
