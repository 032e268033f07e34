"""Membership: what states and births, in any order, say about a site."""

from msgspec.structs import replace

from federated_optimizer.coordinator.sites.federation_membership import (
    MAX_SITES,
    Membership,
)
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.site_messages import (
    Birth,
    BufferState,
    ClockState,
    ConnectorState,
    SiteRole,
    SiteState,
)
from streamsql.wire.source_shapes import SourceShape

TRUSTED = 25_000_000


def state(epoch: int, *, online: bool, role: SiteRole = SiteRole.GATEWAY) -> SiteState:
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
    known.hear_state("base-2", state(1, online=True, role=SiteRole.BASE), now=0)
    known.hear_state("base", state(1, online=False, role=SiteRole.BASE), now=0)
    assert known.with_role(SiteRole.BASE) == ("base", "base-2")
    assert known.forget("base-2")
    assert not known.forget("base-2")
    assert known.with_role(SiteRole.BASE) == ("base",)


def test_nobody_is_taken_for_live_by_what_was_known_before_the_broker_was_away() -> None:
    known = Membership()
    for site in ("gw-1", "gw-2"):
        known.hear_state(site, state(2, online=True), now=0)
    known.lost_touch(100)
    assert [info.freshness for info in known.infos()] == ["stale", "stale"]
    assert known.is_online("gw-1")
    known.hear_state("gw-1", state(2, online=True), now=0, retained_at=200)
    known.hear_live("gw-2", epoch=1)  # by an earlier life
    assert not known.is_in_touch("gw-1")
    assert not known.is_in_touch("gw-2")
    known.hear_state("gw-1", state(2, online=True), now=0)
    known.hear_live("gw-2", epoch=2)
    known.hear_live("gw-3", epoch=1)
    assert known.is_in_touch("gw-1")
    assert known.is_in_touch("gw-2")
    assert not known.is_in_touch("gw-3")
    assert known.give_up(100 + TRUSTED, now=0) == ()


def test_who_fell_while_the_broker_was_away_is_given_up_and_may_come_back() -> None:
    known = Membership()
    known.hear_state("gw-1", state(1, online=True), now=0)
    known.hear_state("gw-2", state(1, online=False), now=0)
    known.lost_touch(100)
    assert known.give_up(99 + TRUSTED, now=7) == ()
    assert known.give_up(100 + TRUSTED, now=7) == ("gw-1",)
    assert known.give_up(100 + TRUSTED, now=8) == ()
    assert known.offline_since("gw-1") == 7
    known.hear_state("gw-1", state(1, online=True), now=9)
    assert known.is_in_touch("gw-1")


def test_what_the_broker_has_retained_is_believed_for_a_while() -> None:
    known = Membership()
    known.hear_state("gw-1", state(1, online=True), now=0, retained_at=50)
    assert known.is_in_touch("gw-1")
    assert known.infos()[0].freshness == "live"
    assert known.give_up(50 + TRUSTED, now=7) == ("gw-1",)
    assert known.is_offline("gw-1")


def test_no_more_sites_than_fit() -> None:
    known = Membership()
    for number in range(MAX_SITES + 5):
        known.hear_state(f"gw-{number}", state(1, online=True), now=0)
    assert len(known.infos()) == MAX_SITES


def test_the_figures_of_a_site_that_dies_are_the_last_known_with_their_time() -> None:
    known = Membership()
    connector = ConnectorState("w", "motes", ("seat",), readings=41)
    last = SiteState(
        *(True, 1, 0),
        buffer=BufferState(stored=3, bytes=120),
        counters={"readings": 41},
        connectors=(connector,),
        clock=ClockState(offset_ms=2.0),
    )
    known.hear_state("gw-1", last, now=20)
    (info,) = known.infos()
    assert (info.figures, info.figures_since) == (last, None)
    known.hear_state("gw-1", state(1, online=False), now=30)
    (info,) = known.infos()
    assert (info.online, info.figures, info.figures_since) == (False, last, 20)
    assert info.connectors == (connector,)
    known.hear_state("gw-1", state(2, online=True), now=40)
    (info,) = known.infos()
    assert (info.figures, info.figures_since) == (state(2, online=True), None)


def test_of_a_site_that_was_never_heard_there_are_no_figures() -> None:
    known = Membership()
    known.hear_state("gw-1", state(1, online=False), now=30)
    (info,) = known.infos()
    assert (info.figures, info.figures_since) == (None, None)


def test_definitions_that_a_gateway_has_made_up_do_no_harm() -> None:
    catalog = Catalog()
    columns = Schema.of(("k", DataType.TEXT))
    catalog.define(SourceDefinition("seat", SourceKind.STREAM, columns))
    odd = tuple((f"column {n} " + "x" * 200, "NOTHING") for n in range(100))
    told = (
        SourceShape("seat", False, odd, ("a" * 999,) * 100, "b" * 999),
        SourceShape("seat", True, (), None),
        SourceShape("seat", False, (("K", "TEXT"),)),
        SourceShape("nowhere", False, odd),
    )
    known = Membership()
    for number, shape in enumerate(told):
        known.hear_birth(Birth(f"gw-{number}", 1, 0, 0, shapes=(shape,)))
    differing = known.differing(catalog)
    assert differing.keys() == {"seat"}
    assert differing["seat"].keys() == {"gw-0", "gw-1"}
    assert all(0 < len(text) <= 1_000 for text in differing["seat"].values())


def test_a_site_is_long_gone_only_after_its_time() -> None:
    membership, second = Membership(), 1_000_000
    membership.hear_state("gw-1", SiteState(True, 1, 0), 0)
    assert membership.long_gone(100 * second, 10 * second) == frozenset()
    membership.hear_state("gw-1", SiteState(False, 1, 0), 100 * second)
    assert membership.long_gone(109 * second, 10 * second) == frozenset()
    assert membership.long_gone(110 * second, 10 * second) == frozenset({"gw-1"})
    membership.hear_state("gw-1", SiteState(True, 2, 0), 111 * second)
    assert membership.long_gone(200 * second, 10 * second) == frozenset()


def test_who_runs_something_and_is_never_heard_is_given_up_and_may_come() -> None:
    known = Membership()
    known.lost_touch(100, {"gw-1": SiteRole.GATEWAY, "base": SiteRole.BASE})
    assert not known.is_offline("gw-1"), "its message may be on its way"
    known.hear_state("base", state(3, online=True, role=SiteRole.BASE), now=5)
    assert known.give_up(100 + TRUSTED, now=7) == ("gw-1",)
    assert known.give_up(100 + TRUSTED, now=8) == ()
    assert known.offline_since("gw-1") == 7
    info = {each.site: each for each in known.infos()}["gw-1"]
    assert (info.online, info.epoch, info.figures) == (False, 0, None)
    assert info.detail == "not heard of since the console was started"
    known.check_removable("gw-1")
    known.hear_state("gw-1", state(0, online=True), now=9)
    assert known.is_in_touch("gw-1")
    assert known.offline_since("gw-1") is None


def test_only_what_statuses_rest_on_counts_as_a_move() -> None:
    known = Membership()

    def moves(told: SiteState, **more: int) -> int:
        before = known.moves
        known.hear_state("gw-1", told, now=0, **more)
        return known.moves - before

    online = state(1, online=True)
    assert moves(online) == 1
    assert moves(replace(online, ts=5, detail="warm", clock=ClockState())) == 0
    assert moves(replace(online, ts=6, buffer=BufferState(stored=9, waiting=9))) == 1
    assert moves(replace(online, ts=7, buffer=BufferState(stored=9, waiting=4))) == 0
    assert moves(replace(online, ts=8)) == 1, "it has sent all"
    assert moves(state(2, online=True)) == 1, "it has begun anew"
    assert moves(state(2, online=False)) == 1
    assert moves(state(2, online=False)) == 0
    assert moves(state(2, online=True)) == 1
    known.lost_touch(moment=10)
    assert moves(state(2, online=True)) == 1, "it is in touch again"
    known.lost_touch(moment=20)
    assert known.give_up(20 + 10 * TRUSTED, now=0) == ("gw-1",)
    assert known.moves == 8
