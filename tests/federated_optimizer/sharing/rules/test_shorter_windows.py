"""Rows of a shorter window come from those of a longer one, or a reason says why not."""

import dataclasses

import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing import delivered_rows
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.delivered_rows import MAX_LONGER
from federated_optimizer.sharing.forms.blocks import block_of
from federated_optimizer.sharing.refusals import NotSharedError
from federated_optimizer.sharing.rules.shorter_windows import over_longer, why_not, window_of
from federated_optimizer.testing_network import Network
from streamsql.algebra.operators import Plan, Window, WindowBounds, Younger, walk_plan
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """
CREATE SOURCE s (k INTEGER, v DOUBLE, room TEXT, ts TIMESTAMP) WITH (ttl = '2 h');
CREATE SOURCE newest (k INTEGER, v DOUBLE, ts TIMESTAMP, KEY (k));
CREATE SOURCE untimed (k INTEGER, v DOUBLE) WITH (ttl = '2 h');
CREATE SOURCE kept_nowhere (k INTEGER, v DOUBLE, ts TIMESTAMP);
CREATE SOURCE other (k INTEGER, v DOUBLE, room TEXT, ts TIMESTAMP) WITH (ttl = '2 h');
"""
)
EVERYWHERE = frozenset(("s", "newest", "untimed", "kept_nowhere", "other"))
TOPOLOGY = Topology({"gw-1": EVERYWHERE, "gw-2": EVERYWHERE})


def rows_of(text: str) -> Plan:
    """Return the window, or the source, in a text."""
    (rows,) = block_of(bound_query(f"SELECT * FROM {text}", CATALOG).plan).inputs
    return rows


ANSWERED = (
    ("s [RANGE 10 MINUTES]", "s [RANGE 1 HOUR]"),
    ("s [RANGE 10 MINUTES]", "s [RANGE 10 MINUTES]"),
    ("s [RANGE 10 MINUTES]", "s"),
    ("s [RANGE 10 MINUTES]", "s [UNBOUNDED]"),
    ("s [RANGE 3 HOURS]", "s"),
    ("newest [RANGE 10 MINUTES]", "newest"),
    ("s [RANGE 10 MINUTES SLIDE 1 MINUTE]", "s [RANGE 11 MINUTES]"),
    ("s [NOW]", "s [RANGE 1 SECOND]"),
)
REFUSED = (
    ("s [RANGE 1 HOUR]", "s [RANGE 10 MINUTES]", "does not reach back"),
    ("s [RANGE 10 MINUTES SLIDE 1 MINUTE]", "s [RANGE 10 MINUTES]", "does not reach back"),
    ("s [NOW]", "s [RANGE 999 MILLISECONDS]", "does not reach back"),
    ("s [RANGE 10 MINUTES]", "s [RANGE 1 HOUR SLIDE 1 MINUTE]", "moves in steps"),
    ("s [RANGE 10 MINUTES]", "s [ROWS 1000]", "more than how old"),
    ("s [RANGE 10 MINUTES]", "s [NOW]", "more than how old"),
    ("untimed [RANGE 10 MINUTES]", "untimed [RANGE 1 HOUR]", "no column of untimed"),
    ("s [RANGE 10 MINUTES]", "other [RANGE 1 HOUR]", "another source"),
)


@pytest.mark.parametrize(("shorter", "longer"), ANSWERED)
def test_longer_windows_have_the_rows(shorter: str, longer: str) -> None:
    window, offered = rows_of(shorter), rows_of(longer)
    assert isinstance(window, Window)
    assert not why_not(window, offered)
    assert over_longer(window, offered) == offered


@pytest.mark.parametrize(("shorter", "longer", "reason"), REFUSED)
def test_others_are_refused_in_words(shorter: str, longer: str, reason: str) -> None:
    window, offered = rows_of(shorter), rows_of(longer)
    assert isinstance(window, Window)
    assert reason in why_not(window, offered)
    with pytest.raises(NotSharedError, match=reason):
        over_longer(window, offered)


def test_a_window_by_count_is_none_by_time() -> None:
    assert window_of(rows_of("s [ROWS 10]")) is None
    with pytest.raises(NotSharedError):
        over_longer(rows_of("s [ROWS 10]"), rows_of("s"))


def registered(*texts: str, whole_changes: bool = False, moves: bool = True) -> FragmentBundle:
    """Return the bundle of the last of some queries that come one after the other.

    Where queries do not move, no rows are given the columns that they lack.
    """
    network = Network(Planning(TOPOLOGY), Sharing(ComputationIndex(), moves=moves))
    for text in texts[:-1]:
        network.register(bound_query(text, CATALOG))
    bound = bound_query(texts[-1], CATALOG)
    bound = dataclasses.replace(bound, whole_changes=whole_changes)
    return network.register(bound).deploy[-1]


def kinds(bundle: FragmentBundle) -> tuple[int, int]:
    """Return how many operators of younger rows a bundle has, and how many of bounds it sends."""
    nodes = [node for fragment in bundle.own for node in walk_plan(fragment.plan)]
    return (
        sum(isinstance(node, Younger) for node in nodes),
        sum(isinstance(node, WindowBounds) for node in nodes),
    )


HOUR = "SELECT k, v, ts FROM s [RANGE 1 HOUR]"


def test_a_shorter_window_is_read_with_its_filter_and_columns() -> None:
    bundle = registered(HOUR, "SELECT k FROM s [RANGE 10 MINUTES] WHERE v > 3")
    assert kinds(bundle) == (1, 1)
    assert [feed.run for feed in bundle.feeds] == ["q1"]
    sent = [f.plan for f in bundle.own if f.consumer]
    assert [plan.predicate is not None for plan in sent if isinstance(plan, WindowBounds)] == [True]


def test_a_shorter_window_is_an_input_of_a_join_and_of_groups() -> None:
    joined = "SELECT a.k, b.v FROM s [RANGE 10 MINUTES] AS a JOIN other AS b ON a.room = b.room"
    assert kinds(registered("SELECT * FROM s [RANGE 1 HOUR]", joined))[0] == 1
    grouped = "SELECT k, AVG(v) AS mean FROM s [RANGE 10 MINUTES] GROUP BY k"
    assert kinds(registered(HOUR, grouped)) == (1, 1)


def test_bounds_that_another_query_has_are_not_sent_again() -> None:
    grouped = "SELECT k, AVG(v) AS mean FROM s [RANGE 10 MINUTES] GROUP BY k"
    bundle = registered(HOUR, grouped, "SELECT k FROM s [RANGE 10 MINUTES]")
    assert kinds(bundle) == (1, 0)


def test_of_longer_windows_the_one_with_the_fewest_rows_is_read() -> None:
    # The other way round the hour itself is read from all rows, and is not sent.
    texts = (HOUR, "SELECT k, v, ts FROM s", "SELECT k FROM s [RANGE 10 MINUTES]")
    bundle = registered(*texts)
    assert kinds(bundle) == (1, 1)
    assert [feed.run for feed in bundle.feeds] == ["q1"]


def test_of_many_longer_windows_the_shortest_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Plan] = []

    def over(wanted: Plan, longer: Plan) -> Plan:
        looked.append(longer)
        return over_longer(wanted, longer)

    monkeypatch.setattr(delivered_rows, "over_longer", over)
    many = [f"SELECT k FROM s [RANGE {minutes} MINUTES]" for minutes in range(90, 20, -1)]
    texts = (HOUR.replace("1 HOUR", "15 MINUTES"), *many, many[0].replace("90", "10"))
    bundle = registered(*texts, moves=False)
    assert [feed.run for feed in bundle.feeds] == ["q1"]
    last = looked[-MAX_LONGER:]
    assert [window.size for window in last if isinstance(window, Window)][:2] == [
        15 * 60 * MICROSECONDS,
        21 * 60 * MICROSECONDS,
    ]
    assert len(looked) <= MAX_LONGER * (len(many) + 1)


@pytest.mark.parametrize(
    "texts",
    [
        ("SELECT k, v FROM s [RANGE 1 HOUR]", "SELECT k FROM s [RANGE 10 MINUTES]"),
        ("SELECT k, ts FROM s [RANGE 1 HOUR] WHERE v > 3", "SELECT k FROM s [RANGE 10 MINUTES]"),
        ("SELECT * FROM untimed [RANGE 1 HOUR]", "SELECT k FROM untimed [RANGE 10 MINUTES]"),
        ("SELECT * FROM s [RANGE 10 MINUTES]", "SELECT k FROM s [RANGE 1 HOUR]"),
        (
            "SELECT * FROM kept_nowhere [RANGE 1 HOUR]",
            "SELECT k FROM kept_nowhere [RANGE 10 MINUTES]",
        ),
    ],
    ids=["no time is shown", "rows are missing", "no time", "longer", "no site keeps readings"],
)
def test_what_is_not_proven_is_delivered_by_itself(texts: tuple[str, str]) -> None:
    bundle = registered(*texts, moves=False)
    assert kinds(bundle) == (0, 0)
    assert not bundle.feeds


def test_a_query_that_acts_reads_no_longer_window() -> None:
    """Rows and bounds come in two messages: a late row would be seen between them."""
    texts = (HOUR, "SELECT k FROM s [RANGE 10 MINUTES]")
    assert kinds(registered(*texts, whole_changes=True)) == (0, 0)


BOTH = (
    "SELECT a.k, a.v, a.room, b.v AS w, b.room AS before, b.ts "
    "FROM {} AS a JOIN {} AS b ON a.k = b.k"
)


def test_a_query_over_two_windows_is_sent_the_longer_one_and_bounds() -> None:
    bundle = registered(BOTH.format("s [RANGE 10 MINUTES]", "s [RANGE 1 HOUR]"))
    assert kinds(bundle) == (1, 1)
    assert len([f for f in bundle.own if f.consumer]) == 2


def test_rows_below_a_shorter_window_may_come_from_another_run() -> None:
    both = BOTH.format("s [RANGE 10 MINUTES]", "s [RANGE 1 HOUR]")
    bundle = registered("SELECT ts, room, v, k FROM s [RANGE 1 HOUR]", both)
    assert kinds(bundle) == (1, 1)
    assert [feed.run for feed in bundle.feeds] == ["q1"]
    assert [f.plan for f in bundle.own if f.consumer and not isinstance(f.plan, WindowBounds)] == []


def test_bounds_are_not_sent_where_rows_are_smaller() -> None:
    text = "SELECT a.k, b.v FROM s [RANGE 10 MINUTES] AS a JOIN s [RANGE 1 HOUR] AS b ON a.k = b.k"
    assert kinds(registered(text)) == (0, 0)


def test_a_query_that_acts_is_sent_both_windows() -> None:
    both = BOTH.format("s [RANGE 10 MINUTES]", "s [RANGE 1 HOUR]")
    assert kinds(registered(both, whole_changes=True)) == (0, 0)
