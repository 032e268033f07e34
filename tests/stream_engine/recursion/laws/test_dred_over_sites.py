"""Delete and rederive over several sites: whatever the order of messages, the view is right."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.recursion.baselines.dred.dred_operator import DredOperator
from stream_engine.recursion.baselines.dred.dred_streams import PORT, Item, Kind, pack
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.program import program_of
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import cheapest_path, doubling, reachable
from stream_engine.testing.recursion_schedules import (
    EXAMPLES,
    LINKS,
    BaseRow,
    Schedule,
    run_schedule,
)
from streamsql.algebra.choices import Strategy, Way
from streamsql.algebra.operators import AggregateSelection, Best, Fixpoint
from streamsql.data.types import Row
from streamsql.errors import InternalError, RecursionLimitError, WireError
from streamsql.wire.messages import AnnotatedRow

HALF = settings(max_examples=max(settings().max_examples // 2, 1))
SITES = ("s0", "s1", "s2", "s3")
DRED = RecursionOptions(strategy=Strategy.DRED)
CHEAPEST_INTO = Fixpoint(
    "path",
    cheapest_path().columns,
    cheapest_path().base,
    cheapest_path().step,
    selection=AggregateSelection(group=(1,), bests=(Best(2),)),
)
"""Grouped by the end of a path, while its beginning is what joins."""

VIEWS = [*EXAMPLES, (CHEAPEST_INTO, LINKS)]


def check(
    node: Fixpoint, pool: Sequence[BaseRow], options: RecursionOptions, seed: int, sites: int
) -> Ensemble:
    schedule = Schedule(pool, changes=25, busy=(8, 30, 80)[seed % 3])
    ensemble, expected = run_schedule(node, SITES[:sites], options, schedule, seed)
    assert ensemble.rows() == expected
    for site, operator in ensemble.operators.items():
        assert ensemble.views[site] == dict.fromkeys(operator.state_rows(), 1)
    assert sum(len(view) for view in ensemble.views.values()) == len(expected)
    return ensemble


@pytest.mark.parametrize(("node", "pool"), VIEWS, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("sites", [2, 3, 4])
def test_changes_while_messages_are_under_way(
    node: Fixpoint, pool: Sequence[BaseRow], sites: int
) -> None:
    for seed in range(2):
        check(node, pool, DRED, 3 * sites + seed, sites)


@HALF
@given(seed=st.integers(0, 10**6), view=st.sampled_from(VIEWS), sites=st.integers(1, 4))
def test_any_interleaving(seed: int, view: tuple[Fixpoint, Sequence[BaseRow]], sites: int) -> None:
    check(*view, DRED, seed, sites)


@pytest.mark.parametrize("way", ["centre", "flood"])
def test_base_rows_may_travel_instead(way: str) -> None:
    options = RecursionOptions(strategy=Strategy.DRED, way=Way(way))
    for node, pool in ((cheapest_path(), LINKS), (doubling(), LINKS)):
        check(node, pool, options, 5, 3)


@pytest.mark.parametrize("strategy", ["absorption", "relative", "dred"])
def test_rows_that_compete_share_a_site(strategy: str) -> None:
    for seed in range(4):
        check(CHEAPEST_INTO, LINKS, RecursionOptions(strategy=Strategy(strategy)), seed, 3)


def owner(key: Row, _sites: tuple[str, ...]) -> str:
    return str(key[0])


def loaded() -> Ensemble:
    """Return the worked example of the literature, one node a site, with its links."""
    options = RecursionOptions(strategy=Strategy.DRED, owner=owner)
    ensemble = Ensemble(reachable(), ("A", "B", "C"), options)
    ensemble.rounds()
    for source, target in ("AB", "BC", "CA", "CB"):
        ensemble.apply(source, 0, {(source, target, 1): 1})
    return ensemble


def operators(ensemble: Ensemble) -> list[DredOperator]:
    found = [o for o in ensemble.operators.values() if isinstance(o, DredOperator)]
    assert len(found) == len(ensemble.operators)
    return found


def sent_messages(operator: DredOperator) -> int:
    """Leaf rows and derived rows sent, over-deletions and questions among them."""
    return operator.counters.sent_rows - operator.counters.sent_control


def test_loading_costs_what_plain_sets_cost() -> None:
    ensemble = loaded()
    ensemble.rounds()
    assert len(ensemble.rows()) == 9
    assert sum(map(sent_messages, operators(ensemble))) == 16


def test_one_deletion_costs_as_much_as_loading() -> None:
    ensemble = loaded()
    ensemble.rounds()
    before = sum(map(sent_messages, operators(ensemble)))
    shown = {site: dict(view) for site, view in ensemble.views.items()}
    ensemble.apply("C", 0, {("C", "B", 1): -1})
    ensemble.rounds()
    counters = [o.counters for o in operators(ensemble)]
    assert sum(c.over_deleted for c in counters) == 9
    assert sum(c.rederived for c in counters) == 9
    assert sum(map(sent_messages, operators(ensemble))) - before >= 16
    assert ensemble.views == shown


def test_no_row_flickers_during_a_wave() -> None:
    ensemble = loaded()
    ensemble.rounds()
    ensemble.apply("C", 0, {("C", "B", 1): -1})
    for _ in range(20):
        for site, operator in ensemble.operators.items():
            assert operator.settle(rounds=1) == {}
            for message in operator.drain():
                ensemble.operators[message.site].receive(
                    site, message.port, message.annotated, message.kills
                )
    assert operators(ensemble)[0].counters.waves == 1


def test_a_lost_site_takes_its_rows_along_whoever_leads() -> None:
    for lost in SITES[:3]:
        ensemble = Ensemble(reachable(), SITES[:3], DRED, seed=1)
        for number, site in enumerate(SITES[:3]):
            ensemble.apply(site, 0, {("abc"[number], "bca"[number], 1): 1})
        for site in SITES[:3]:
            ensemble.step(site)
        ensemble.run()
        assert len(ensemble.rows()) == 9
        left = [site for site in SITES[:3] if site != lost]
        for site in left:
            ensemble.operators[site].kill_site(lost, 1)
        del ensemble.operators[lost]
        for channel in list(ensemble.channels):
            if lost in channel:
                del ensemble.channels[channel]
        ensemble.run()
        assert len(ensemble.rows()) == 3
        assert sum(len(ensemble.views[site]) for site in left) == 3


def test_a_message_that_comes_again_changes_nothing() -> None:
    ensemble = Ensemble(reachable(), SITES[:2], DRED)
    ensemble.run()
    seen: list[tuple[str, str, bytes]] = []
    for sign in (1, -1, 1):
        for a, b in ("ab", "bc", "ca"):
            ensemble.apply(SITES[ord(a) % 2], 0, {(a, b, 1): sign})
            ensemble.step(SITES[ord(a) % 2])
            while any(ensemble.channels.values()):
                for (sender, receiver), queue in list(ensemble.channels.items()):
                    seen.extend((sender, receiver, payload) for payload in queue)
                    while queue:
                        ensemble.deliver(sender, receiver)
                for site in SITES[:2]:
                    ensemble.step(site)
    rows = ensemble.rows()
    waves = [o.counters.waves for o in operators(ensemble)]
    for sender, receiver, payload in seen:
        ensemble.channels[sender, receiver].append(payload)
    ensemble.run()
    assert ensemble.rows() == rows
    assert len(rows) == 9
    assert [o.counters.waves for o in operators(ensemble)] == waves


def test_a_view_beyond_its_limit_is_stopped() -> None:
    ensemble = Ensemble(reachable(limit=3), SITES[:2], DRED)
    ensemble.apply("s0", 0, {(a, b, 1): 1 for a, b in zip("abcde", "bcdea", strict=True)})
    with pytest.raises(RecursionLimitError, match="more than 3 rows"):
        ensemble.run()
    (stopped,) = [o for o in operators(ensemble) if o._failure is not None]
    stopped.apply(0, {("x", "y", 1): 1})
    with pytest.raises(RecursionLimitError, match="more than 3 rows"):
        stopped.settle()


JOIN = Item(Kind.JOIN, (), (1,))
MARK = Item(Kind.MARK, (), (0, 1, 1, 0))


@pytest.mark.parametrize(
    "groups",
    [
        [b""],
        [b"\0\77"],
        [pack([Item(Kind.WANT)], 0)],  # without having joined
        [pack([JOIN], 0), pack([Item(Kind.WANT)], 2)],  # one is missing
        [pack([JOIN, Item(Kind.WANT)], 0)],  # of no generation
        [pack([JOIN, Item(Kind.MARK, (), (9, 1, 1, 0)), Item(Kind.WANT)], 0)],
        [pack([JOIN], 0), pack([Item(Kind.WANT, ("x",))], 1)],
        [pack([JOIN, Item(Kind.START, (), (1, 9, 1))], 0)],
        [pack([JOIN, Item(Kind.START, (), (1, 0))], 0)],
        [pack([JOIN, MARK], 0), pack([Item(Kind.INSERT, ("a",))], 1)],
        [pack([JOIN, MARK], 0), pack([Item(Kind.LEAF_IN, ("a", "b"), (7,))], 1)],
        [pack([JOIN, MARK], 0), pack([Item(Kind.LEAF_OUT, ("a",), (0,))], 1)],
    ],
)
def test_malformed_items_are_refused(groups: list[bytes]) -> None:
    operator = Ensemble(reachable(), SITES, DRED).operators["s0"]
    with pytest.raises(WireError):
        operator.receive("s1", PORT, [AnnotatedRow((), group) for group in groups], ())


def test_strangers_and_other_ports_are_refused() -> None:
    operator = Ensemble(reachable(), SITES, DRED).operators["s0"]
    with pytest.raises(WireError, match="no part"):
        operator.receive("s9", PORT, [AnnotatedRow((), pack([JOIN], 0))], ())
    with pytest.raises(WireError, match="no port 'rows'"):
        operator.receive("s1", "rows", (), ())
    with pytest.raises(InternalError):
        DredOperator(program_of(reachable()), site="s9", sites=SITES, epoch=1, options=DRED)
