"""Membership: what states and births, in any order, say about a site."""

from federated_optimizer.coordinator.membership import MAX_SITES, Membership
from streamsql.wire.messages import Birth, SiteState


def state(epoch: int, *, online: bool, role: str = "gateway") -> SiteState:
    return SiteState(online=online, epoch=epoch, ts=0, role=role)


def test_a_late_will_of_an_older_life_is_ignored() -> None:
    known = Membership()
    assert known.hear_state("gw-1", state(2, online=True), now=5)
    assert not known.hear_state("gw-1", state(1, online=False), now=6)
    assert known.is_online("gw-1")
    assert known.epoch("gw-1") == 2


def test_a_birth_of_an_older_life_is_ignored() -> None:
    known = Membership()
    known.hear_birth(Birth("gw-1", 2, 0, 0, sources=("Seat",)))
    assert not known.hear_birth(Birth("gw-1", 1, 0, 0, sources=("old",)))
    assert known.sources() == {"gw-1": frozenset({"seat"})}


def test_freshness_and_since() -> None:
    known = Membership()
    known.hear_birth(Birth("gw-1", 1, 0, 0, rooms=("r1",), sources=("seat",)))
    assert known.infos()[0].freshness == "unknown"
    known.hear_state("gw-1", state(1, online=True), now=10)
    known.hear_state("gw-1", state(1, online=True), now=20)
    (info,) = known.infos()
    assert (info.freshness, info.since, info.rooms) == ("live", 10, ("r1",))
    known.hear_state("gw-1", state(1, online=False), now=30)
    (info,) = known.infos()
    assert (info.freshness, info.since, info.detail) == ("stale", 30, "connection lost")
    assert known.offline_since("gw-1") == 30
    # What it offers stays known while it is away.
    assert known.sources() == {"gw-1": frozenset({"seat"})}


def test_roles_and_removal() -> None:
    known = Membership()
    known.hear_state("base-2", state(1, online=True, role="base"), now=0)
    known.hear_state("base", state(1, online=False, role="base"), now=0)
    assert known.with_role("base") == ("base", "base-2")
    assert known.forget("base-2")
    assert not known.forget("base-2")
    assert known.with_role("base") == ("base",)


def test_no_more_sites_than_fit() -> None:
    known = Membership()
    for number in range(MAX_SITES + 5):
        known.hear_state(f"gw-{number}", state(1, online=True), now=0)
    assert len(known.infos()) == MAX_SITES
