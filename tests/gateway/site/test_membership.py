"""Who is online, who is lost, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.site.membership import MAX_SITES, Membership
from streamsql.wire.site_messages import SiteState

GRACE = 10
TRUSTED = 25_000_000


class Members:
    """A membership and what it has reported."""

    def __init__(self) -> None:
        self.lost: list[tuple[str, int]] = []
        self.gone: list[str] = []
        self.of = Membership(
            GRACE, lambda site, epoch: self.lost.append((site, epoch)), self.gone.append
        )

    def hear(
        self, now: int, *, online: bool, epoch: int = 1, site: str = "a", retained: bool = False
    ) -> None:
        self.of.heard(site, SiteState(online, epoch, 0), now, retained=retained)


def test_an_offline_site_is_lost_once_after_the_grace_time() -> None:
    members = Members()
    members.hear(0, online=True)
    members.hear(100, online=False)
    assert members.of.next_deadline() == 100 + GRACE
    members.of.check(100 + GRACE - 1)
    assert members.lost == []
    for now in (100 + GRACE, 200, 300):
        members.of.check(now)
    assert members.lost == [("a", 1)]
    assert members.of.next_deadline() is None
    assert members.of.online() == ()


def test_a_site_that_comes_back_in_time_is_not_lost() -> None:
    members = Members()
    members.hear(0, online=False)
    members.hear(GRACE - 1, online=True)
    members.of.check(100)
    assert members.lost == []
    assert members.of.online() == ("a",)


def test_a_site_is_lost_again_after_it_came_back() -> None:
    members = Members()
    members.hear(0, online=False)
    members.of.check(GRACE)
    members.hear(50, online=True, epoch=2)
    members.hear(60, online=False, epoch=2)
    members.of.check(60 + GRACE)
    assert members.lost == [("a", 1), ("a", 2)]


def test_a_will_of_an_earlier_life_is_ignored() -> None:
    members = Members()
    members.hear(0, online=True, epoch=2)
    members.hear(1, online=False, epoch=1)
    members.of.check(1_000)
    assert members.lost == []
    assert members.of.online() == ("a",)


def test_repeated_wills_do_not_prolong_the_grace_time() -> None:
    members = Members()
    for now in range(0, 2 * GRACE, 3):
        members.hear(now, online=False)
        members.of.check(now)
    assert members.lost == [("a", 1)]


def test_a_site_that_comes_back_in_the_same_life_is_not_lost_any_more() -> None:
    """Its network was away for longer than the grace time, and may be again."""
    members = Members()
    members.hear(0, online=False)
    members.of.check(GRACE)
    assert members.of.lost() == (("a", 1),)
    members.hear(50, online=True)
    assert members.of.lost() == ()
    members.hear(60, online=False)
    members.of.check(60 + GRACE)
    assert members.lost == [("a", 1), ("a", 1)]


def test_a_removed_site_is_lost_after_the_grace_time() -> None:
    members = Members()
    members.hear(0, online=True)
    members.of.removed("a", 5)
    members.of.removed("never heard of", 5)
    members.of.check(5 + GRACE - 1)
    assert (members.lost, members.gone) == ([], [])
    members.of.check(5 + GRACE)
    members.of.check(6 + GRACE)
    assert (members.lost, members.gone) == ([("a", 1)], ["a"])
    assert members.of.next_deadline() is None


def test_a_site_that_is_lost_already_is_removed_at_once() -> None:
    members = Members()
    members.hear(0, online=False)
    members.of.check(GRACE)
    members.of.removed("a", 100)
    assert members.of.next_deadline() == GRACE
    members.of.check(100)
    assert (members.lost, members.gone) == ([("a", 1)], ["a"])


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_site_that_announces_itself_again_is_not_removed(epoch: int) -> None:
    members = Members()
    members.hear(0, online=True)
    members.of.removed("a", 5)
    members.hear(6, online=True, epoch=epoch)
    members.of.check(1_000)
    assert (members.lost, members.gone) == ([], [])
    assert members.of.known() == {"a"}
    members.hear(2_000, online=False, epoch=epoch)  # and later it dies, which is something else
    members.of.check(2_000 + GRACE)
    assert (members.lost, members.gone) == ([("a", epoch)], [])


def test_what_is_only_retained_must_be_confirmed() -> None:
    """A site that died while the broker was away left no will."""
    members = Members()
    members.hear(0, online=True, retained=True)
    members.hear(0, online=True, retained=True, site="b")
    members.hear(1, online=True, site="b")
    members.of.check(TRUSTED)
    members.of.check(TRUSTED + GRACE)
    assert members.lost == [("a", 1)]


def test_what_is_retained_and_comes_again_confirms_nothing() -> None:
    """It comes with every subscription; the doubt is as old as the first."""
    members = Members()
    members.hear(0, online=True, retained=True)
    members.hear(TRUSTED - 1, online=True, retained=True)
    assert members.of.next_deadline() == TRUSTED
    members.of.check(TRUSTED)
    members.of.check(TRUSTED + GRACE)
    assert members.lost == [("a", 1)]


def test_after_a_reconnect_everybody_is_doubted_until_heard() -> None:
    members = Members()
    members.hear(0, online=True)
    members.hear(0, online=True, site="b")
    members.of.reconnected(1_000)
    members.hear(1_001, online=True, site="b")
    members.hear(1_002, online=True, site="b", retained=True)  # of a later subscription
    members.hear(1_003, online=True, site="b")
    assert members.of.next_deadline() == 1_000 + TRUSTED
    members.of.check(1_000 + TRUSTED)
    members.of.check(1_000 + TRUSTED + GRACE)
    assert members.lost == [("a", 1)]
    members.hear(10**9, online=True)
    assert members.of.online() == ("a", "b")


def test_only_so_many_sites_are_remembered() -> None:
    members = Members()
    for number in range(MAX_SITES + 5):
        members.hear(0, online=True, site=f"s{number}")
    assert len(members.of.online()) == MAX_SITES


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 30),  # time that passes
        st.sampled_from(["a", "b"]),
        st.booleans(),  # online
        st.integers(1, 3),  # epoch
    ),
    max_size=30,
)


@given(EVENTS)
def test_lost_means_offline_for_the_grace_time_in_the_newest_epoch(
    events: list[tuple[int, str, bool, int]],
) -> None:
    members = Members()
    newest: dict[str, int] = {}
    offline: dict[str, int | None] = {}
    expected: list[tuple[str, int]] = []
    told: set[str] = set()
    now = 0
    for passed, site, online, epoch in events:
        for moment in range(now, now + passed + 1):
            members.of.check(moment)
            for name in sorted(offline):
                since = offline[name]
                if since is not None and name not in told and moment - since >= GRACE:
                    told.add(name)
                    expected.append((name, newest[name]))
        now += passed
        if epoch >= newest.get(site, 0):
            if epoch > newest.get(site, 0):
                newest[site], offline[site] = epoch, None
                told.discard(site)
            if online:
                offline[site] = None
                told.discard(site)
            elif offline[site] is None:
                offline[site] = now
        members.hear(now, online=online, epoch=epoch, site=site)
    assert sorted(members.lost) == sorted(expected)
