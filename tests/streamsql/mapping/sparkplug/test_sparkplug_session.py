"""What nodes and devices say over time: births, aliases, partial data, deaths, gaps, restarts."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.mapping.payloads.sparkplug_payload import decode_sparkplug, sparkplug_topic
from streamsql.mapping.sparkplug import followed_nodes
from streamsql.mapping.sparkplug.session_changes import Changes, DeviceId
from streamsql.mapping.sparkplug.sparkplug_session import SparkplugSession
from tests.streamsql.mapping.sparkplug.written import NOON, alias, bd_seq, level, temp, written

SECOND = 1_000_000
START = NOON * 1_000


class Heard:
    """A session and its time."""

    def __init__(self, *wanted: str, asks: bool = True) -> None:
        self.session = SparkplugSession(wanted or ("Temp", "Level"), asks=asks)
        self.now = START

    def __call__(self, place: str, payload: bytes, *, is_old: bool = False) -> Changes:
        topic = sparkplug_topic(f"spBv1.0/{place}")
        assert topic is not None
        return self.session.heard(topic, decode_sparkplug(payload), self.now, is_old=is_old)

    def born(self, *, session: int = 0) -> "Heard":
        """Let a node and a device be born: their numbers are 0 and 1."""
        self("g/NBIRTH/n", written(bd_seq(session), seq=0))
        self("g/DBIRTH/n/d", written(temp(20.0), level(-2), seq=1))
        return self

    def later(self, seconds: float) -> Changes:
        self.now += int(seconds * SECOND)
        return self.session.due(self.now)


def values(changes: Changes) -> list[Mapping[str, object]]:
    return [row.values for row in changes.rows]


def rebirths(changes: Changes) -> list[str]:
    return [f"{'/'.join(node)}: {reason}" for node, reason in changes.rebirths.items()]


def test_a_birth_names_the_aliases_of_data() -> None:
    heard = Heard()
    heard("g/NBIRTH/n", written(bd_seq(0), seq=0))
    born = heard("g/DBIRTH/n/d", written(temp(20.0), level(-2), seq=1))
    assert values(born) == [{"Temp": 20.0, "Level": -2}]
    data = heard(
        "g/DDATA/n/d", written(alias(2, int_value=2**32 - 7), alias(1, double_value=5), seq=2)
    )
    assert values(data) == [{"Temp": 5.0, "Level": -7}]
    assert data.rebirths == {}


def test_what_a_message_leaves_out_keeps_its_last_value() -> None:
    heard = Heard().born()
    assert values(heard("g/DDATA/n/d", written(alias(1, double_value=21), seq=2))) == [
        {"Temp": 21.0, "Level": -2}
    ]
    null = heard("g/DDATA/n/d", written(alias(2, is_null=True), seq=3))
    assert values(null) == [{"Temp": 21.0, "Level": None}]


def test_a_message_of_other_metrics_makes_no_row() -> None:
    heard = Heard("Temp").born()
    changes = heard("g/DDATA/n/d", written(alias(2, int_value=1), seq=2))
    assert (changes.rows, changes.rebirths) == ([], {})


def test_a_row_has_the_time_of_its_newest_metric() -> None:
    heard = Heard().born()
    dated = written(
        alias(1, double_value=1, timestamp=NOON + 5),
        alias(2, int_value=1, timestamp=NOON + 3),
        seq=2,
    )
    assert heard("g/DDATA/n/d", dated).rows[0].time == (NOON + 5) * 1_000
    undated = written(alias(1, double_value=1), seq=3, ms=NOON + 9)
    assert heard("g/DDATA/n/d", undated).rows[0].time == (NOON + 9) * 1_000
    assert (
        heard("g/DDATA/n/d", written(alias(1, double_value=1), seq=4, ms=None)).rows[0].time is None
    )


def test_a_metric_that_comes_twice_makes_two_rows_and_history_none() -> None:
    heard = Heard().born()
    twice = written(
        alias(1, double_value=1, timestamp=NOON + 1),
        alias(1, double_value=2, timestamp=NOON + 2),
        alias(1, double_value=9, timestamp=NOON, is_historical=True),
        seq=2,
    )
    changes = heard("g/DDATA/n/d", twice)
    assert [(row.values["Temp"], row.time) for row in changes.rows] == [
        (1.0, (NOON + 1) * 1_000),
        (2.0, (NOON + 2) * 1_000),
    ]


def test_a_node_has_metrics_of_its_own() -> None:
    heard = Heard()
    born = heard("g/NBIRTH/n", written(bd_seq(0), temp(3.0), seq=0))
    assert (values(born), born.birth_of) == ([{"Temp": 3.0}], ("g", "n"))
    assert values(heard("g/NDATA/n", written(alias(1, double_value=4), seq=1))) == [{"Temp": 4.0}]


def test_the_death_of_a_node_is_that_of_its_devices() -> None:
    heard = Heard().born(session=7)
    gone = heard("g/NDEATH/n", written(bd_seq(7))).gone
    assert set(gone) == {DeviceId("g", "n"), DeviceId("g", "n", "d")}
    assert heard("g/NDEATH/n", written(bd_seq(7))).gone == []


def test_a_late_death_of_an_earlier_session_is_ignored() -> None:
    heard = Heard().born(session=7)
    heard.born(session=8)
    assert heard("g/NDEATH/n", written(bd_seq(7))).gone == []
    assert len(heard("g/NDEATH/n", written(bd_seq(8))).gone) == 2


def test_a_device_dies_alone() -> None:
    heard = Heard().born()
    changes = heard("g/DDEATH/n/d", written(seq=2))
    assert (changes.gone, changes.rebirths) == ([DeviceId("g", "n", "d")], {})
    again = heard("g/DDATA/n/d", written(alias(1, double_value=1), seq=3))
    assert (values(again), rebirths(again)) == ([], ["g/n: a birth was not received"])


def test_data_before_a_birth_asks_for_it_and_makes_no_row() -> None:
    heard = Heard()
    changes = heard("g/DDATA/n/d", written({"name": "Temp", "double_value": 1.0}, seq=5))
    assert (values(changes), rebirths(changes)) == ([], ["g/n: its birth was not received"])


def test_a_node_that_is_never_born_again_counts_as_far_as_it_says_names() -> None:
    heard = Heard()
    named = written({"name": "Temp", "double_value": 1.0}, seq=5)
    heard("g/DDATA/n/d", named)
    heard.later(60)
    assert values(heard("g/DDATA/n/d", named)) == [{"Temp": 1.0}]
    unknown = heard("g/DDATA/n/d", written(alias(4, int_value=1), seq=6))
    assert unknown.problem == "no birth has defined the alias 4"


def test_after_a_gap_aliases_wait_for_a_birth() -> None:
    """A birth that gave other aliases may be among what is missing."""
    heard = Heard().born()
    late = heard("g/DDATA/n/d", written(alias(1, double_value=99), seq=4))
    assert (values(late), rebirths(late)) == ([], ["g/n: messages are missing before number 4"])
    named = heard("g/DDATA/n/d", written({"name": "Temp", "double_value": 30.0}, seq=5))
    assert values(named) == [{"Temp": 30.0, "Level": -2}]
    heard.born()
    after = heard("g/DDATA/n/d", written(alias(1, double_value=31), seq=2))
    assert (values(after), after.rebirths) == ([{"Temp": 31.0, "Level": -2}], {})


def test_a_gap_that_no_birth_answers_ends_after_a_minute() -> None:
    heard = Heard().born()
    heard("g/DDATA/n/d", written(alias(1, double_value=99), seq=4))
    heard.later(60)
    data = heard("g/DDATA/n/d", written(alias(1, double_value=98), seq=5))
    assert values(data) == [{"Temp": 98.0, "Level": -2}]


def test_the_number_after_255_is_0_and_the_same_number_again_is_no_gap() -> None:
    heard = Heard()
    heard("g/NBIRTH/n", written(bd_seq(0), temp(3.0), seq=254))
    for seq in (255, 0, 0, 1):
        assert heard("g/NDATA/n", written(alias(1, double_value=4), seq=seq)).rebirths == {}


def test_numbers_run_over_all_messages_of_a_node() -> None:
    heard = Heard().born()
    other = written(temp(20.0), seq=2)
    assert heard("g/DBIRTH/n/e", other).rebirths == {}
    assert heard("g/DDATA/n/d", written(alias(1, double_value=4), seq=3)).rebirths == {}
    assert heard("g/DDEATH/n/e", written(seq=4)).rebirths == {}
    assert heard("g/NDATA/n", written(seq=5)).rebirths == {}


def test_where_nobody_is_asked_data_counts_as_it_comes() -> None:
    heard = Heard(asks=False)
    named = heard("g/DDATA/n/d", written({"name": "Temp", "double_value": 1.0}, seq=5))
    assert (values(named), named.rebirths) == ([{"Temp": 1.0}], {})
    heard.born()
    gap = heard("g/DDATA/n/d", written(alias(1, double_value=2), seq=9))
    assert (values(gap), gap.rebirths) == ([{"Temp": 2.0, "Level": -2}], {})


def test_devices_that_a_new_birth_of_the_node_does_not_follow_are_gone() -> None:
    heard = Heard().born()
    heard("g/DBIRTH/n/e", written(temp(1.0), seq=2))
    heard.born(session=1)
    assert heard.later(9).gone == []
    assert heard.later(2).gone == [DeviceId("g", "n", "e")]
    assert heard.later(100).gone == []


def test_a_birth_that_says_what_was_known_is_a_repeat() -> None:
    heard = Heard().born()
    heard("g/NBIRTH/n", written(bd_seq(0), seq=0))
    assert heard("g/DBIRTH/n/d", written(temp(20.0), level(-2), seq=1)).rows[0].is_repeat
    assert not heard("g/DBIRTH/n/d", written(temp(20.5), level(-2), seq=2)).rows[0].is_repeat


def test_who_does_not_answer_after_a_restart_is_gone() -> None:
    before = Heard().born(session=3)
    heard = Heard()
    changes = heard.session.restore(before.session.known(), heard.now)
    assert rebirths(changes) == ["g/n: the gateway was restarted"]
    heard.session.asked(("g", "n"), heard.now)
    assert heard.later(30).gone == []
    heard.session.asked(("g", "n"), heard.now)
    assert set(heard.later(31).gone) == {DeviceId("g", "n"), DeviceId("g", "n", "d")}
    assert heard.session.known() == []


def test_the_time_to_answer_begins_with_the_command() -> None:
    """Commands to many nodes are spread over minutes: the last one is published late."""
    heard = Heard()
    heard.session.restore(Heard().born(session=3).session.known(), heard.now)
    late = heard.later(600)
    assert (late.gone, rebirths(late)) == ([], ["g/n: the gateway was restarted"])
    heard.session.asked(("g", "n"), heard.now)
    heard.session.asked(("g", "unknown"), heard.now)
    assert heard.later(59).gone == []
    assert len(heard.later(1).gone) == 2


def test_a_retained_birth_is_no_answer_after_a_restart() -> None:
    heard = Heard()
    heard.session.restore(Heard().born(session=3).session.known(), heard.now)
    heard("g/NBIRTH/n", written(bd_seq(3), seq=0), is_old=True)
    assert rebirths(heard.later(20)) == ["g/n: the gateway was restarted"]
    heard.session.asked(("g", "n"), heard.now)
    assert heard.later(59).gone == []
    assert heard.later(1).gone == [DeviceId("g", "n", "d")]


def test_who_answers_after_a_restart_stays() -> None:
    heard = Heard()
    heard.session.restore(Heard().born(session=3).session.known(), heard.now)
    heard.born(session=3)
    assert heard.later(100).gone == []
    assert heard.session.known() == [("g", "n", 3, ("", "d"))]


def test_a_death_counts_that_comes_after_a_restart() -> None:
    heard = Heard()
    heard.session.restore(Heard().born(session=3).session.known(), heard.now)
    assert heard("g/NDEATH/n", written(bd_seq(2))).gone == []
    assert len(heard("g/NDEATH/n", written(bd_seq(3))).gone) == 2


def test_a_node_that_speaks_but_is_not_born_again_stays_after_a_restart() -> None:
    heard = Heard()
    heard.session.restore(Heard().born().session.known(), heard.now)
    heard.session.asked(("g", "n"), heard.now)
    heard("g/DDATA/n/d", written(alias(1, double_value=2), seq=9))
    assert heard.later(61).gone == [DeviceId("g", "n")]


def test_a_retained_birth_is_doubted() -> None:
    heard = Heard()
    changes = heard("g/NBIRTH/n", written(temp(3.0), seq=0), is_old=True)
    assert values(changes) == [{"Temp": 3.0}]
    assert rebirths(changes) == ["g/n: its birth was retained and may be old"]
    assert heard("g/NDATA/n", written(alias(1, double_value=4), seq=77)).rebirths == {}
    assert heard("g/NDEATH/n", written(), is_old=True) == Changes()


def test_a_metric_that_no_birth_has_is_reported_once() -> None:
    heard = Heard("Tmep").born()
    assert heard.later(9).problem == ""
    assert heard.later(2).problem == "no birth has a metric that a column reads; g/n has bdSeq"
    assert heard.later(60).problem == ""
    fits = Heard().born()
    assert fits.later(60).problem == ""


def test_invented_nodes_do_not_bar_real_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_nodes, "MAX_NODES", 3)
    monkeypatch.setattr(followed_nodes, "MAX_DEVICES", 5)
    heard = Heard().born()
    for number in range(20):
        heard(f"g/NDATA/x{number}", written(seq=1))
    for number in range(2):
        heard(f"g/NBIRTH/real{number}", written(temp(1.0), seq=0))
    left_out = heard("g/NBIRTH/real2", written(temp(1.0), seq=0))
    assert left_out.problem == "more than 3 nodes: g/real2 is left out"
    assert {node for _, node, *_ in heard.session.known()} == {"n", "real0", "real1"}
    heard("g/DBIRTH/n/e", written(temp(1.0), seq=2))
    left_out = heard("g/DBIRTH/n/f", written(temp(1.0), seq=3))
    assert left_out.problem == "more than 5 nodes and devices: g/n/f is left out"


def test_invented_devices_of_one_node_do_not_bar_other_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(followed_nodes, "MAX_DEVICES", 5)
    heard = Heard()
    for number in range(20):
        heard(f"g/DDATA/invented/x{number}", written(seq=1))
    assert heard.session.used() == (5, 0)
    assert heard.session.known() == [], "an invented device is not remembered"
    heard.born()
    assert {node for _, node, *_ in heard.session.known()} == {"n"}
    for number in range(4):
        heard(f"g/DBIRTH/n/d{number}", written(temp(1.0), seq=number + 2))
    changes = heard("g/DBIRTH/n/d4", written(temp(1.0), seq=6))
    assert changes.problem == "more than 5 nodes and devices: g/n/d4 is left out"
    whole = heard("g/NBIRTH/m", written(temp(1.0), seq=0))
    assert whole.problem == "more than 5 nodes and devices: g/m is left out"
    assert whole.birth_of == ("g", "m")


def test_invented_nodes_do_not_remove_what_was_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_nodes, "MAX_NODES", 3)
    monkeypatch.setattr(followed_nodes, "MAX_DEVICES", 5)
    heard = Heard()
    heard.session.restore(Heard().born().session.known(), heard.now)
    gone = []
    for number in range(20):
        gone += heard(f"g/DDATA/x{number}/d", written(seq=1)).gone
        gone += heard(f"g/DDATA/n/x{number}", written(seq=1)).gone
        gone += heard(f"g/DDEATH/y{number}/d", written(seq=1)).gone
    assert {device.node for device in gone} == {f"y{number}" for number in range(20)}
    assert heard.session.known() == [("g", "n", 0, ("", "d"))]


@pytest.mark.parametrize("asks", [True, False])
def test_devices_with_rows_leave_after_those_without(
    monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    monkeypatch.setattr(followed_nodes, "MAX_NODES", 3)
    heard = Heard(asks=asks)
    named = written({"name": "Temp", "double_value": 1.0}, seq=5)
    heard("g/DDATA/n/d", named)
    heard.later(60)
    assert values(heard("g/DDATA/n/d", named)) == [{"Temp": 1.0}]
    for number in range(20):
        assert heard(f"g/NDATA/x{number}", written(seq=1)).gone == []
    assert heard.session.known() == [("g", "n", None, ("d",))]
    for number in range(2):
        assert heard(f"g/NBIRTH/real{number}", written(temp(1.0), seq=0)).gone == []
    gone = heard("g/NBIRTH/real2", written(temp(1.0), seq=0)).gone
    assert gone == [DeviceId("g", "n", "d")], "a node with a birth goes before it"


def test_nodes_without_a_birth_are_removed_after_an_hour_of_silence() -> None:
    heard = Heard().born()
    heard("g/DDATA/n/other", written(seq=2))
    heard("g/DDATA/x/d", written(seq=1))
    heard("g/NDATA/y", written(seq=1))
    heard.later(1_800)
    heard("g/NDATA/y", written(seq=2))
    assert heard.session.used()[0] == 5
    assert heard.later(1_800).gone == [], "nothing of them was shown"
    assert heard.session.used()[0] == 3
    heard.later(1_800)
    assert heard.session.used()[0] == 2


def test_rows_of_what_had_to_leave_go_though_the_message_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(followed_nodes, "MAX_DEVICES", 3)
    monkeypatch.setattr(followed_nodes, "MAX_METRICS", 6)
    heard = Heard().born()
    heard("g/DBIRTH/n/e", written(temp(1.0), seq=2))
    heard.born()
    heard("g/DDATA/n/e", written({"name": "Temp", "double_value": 1.0}, seq=2))
    heard.later(10)
    metrics = [temp(1.0) for _ in range(9)]
    changes = heard("g/DBIRTH/n/f", written(*metrics, seq=3))
    assert changes.gone == [DeviceId("g", "n", "e")]
    assert "more than 6 metrics: g/n/f is left out" in changes.problem


def test_the_same_birth_again_is_no_news_to_remember() -> None:
    heard = Heard().born()
    assert heard.session.is_changed
    heard.session.known()
    heard.born()
    assert not heard.session.is_changed
    heard.born(session=1)
    assert heard.session.is_changed


def test_the_metrics_of_all_births_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_nodes, "MAX_METRICS", 5)
    heard = Heard().born()
    heard.born()
    left_out = heard("g/DBIRTH/n/e", written(*(temp(1.0) for _ in range(3)), seq=2))
    assert "more than 5 metrics" in left_out.problem
    heard("g/DDEATH/n/d", written(seq=3))
    heard("g/DBIRTH/n/e", written(*(temp(1.0) for _ in range(3)), seq=4))


CHANGED = st.lists(
    st.dictionaries(st.sampled_from(["Temp", "Level"]), st.integers(-9, 9), min_size=1), max_size=12
)


@given(CHANGED, st.sets(st.integers(0, 11)))
def test_whatever_is_lost_a_birth_makes_all_values_right(
    changes: list[dict[str, int]], lost: set[int]
) -> None:
    """The device's own values are the oracle: no row shows one that it has not had."""
    heard = Heard().born()
    device: dict[str, float] = {"Temp": 20.0, "Level": -2}
    shown: dict[str, object] = {}
    is_whole = True
    for number, changed in enumerate(changes):
        device.update(changed)
        metrics = [
            alias(1, double_value=v) if name == "Temp" else alias(2, int_value=v % 2**32)
            for name, v in changed.items()
        ]
        if number in lost:
            is_whole = False
            continue
        found = heard("g/DDATA/n/d", written(*metrics, seq=number + 2))
        assert bool(found.rebirths) == (not is_whole)
        if is_whole:
            assert values(found) == [device]
        else:
            assert found.rows == []
    heard("g/NBIRTH/n", written(bd_seq(0), seq=0))
    birth = written(temp(device["Temp"]), level(int(device["Level"])), seq=1)
    shown.update(heard("g/DBIRTH/n/d", birth).rows[0].values)
    assert shown == device


METRIC = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["Temp", "Level", "bdSeq", "Other", ""]),
        "alias": st.integers(0, 3),
        "datatype": st.integers(0, 40),
        "is_null": st.booleans(),
        "is_historical": st.booleans(),
        "timestamp": st.integers(0, 2**64 - 1),
        "double_value": st.floats(),
    },
)
PLACES = st.sampled_from(
    [f"g/{kind}/n{device}" for kind, device in (
        ("NBIRTH", ""), ("NDATA", ""), ("NDEATH", ""), ("DBIRTH", "/d"), ("DDATA", "/d"),
        ("DDEATH", "/d"), ("DDATA", "/e"), ("DBIRTH", "/e"),
    )]
)  # fmt: skip
MESSAGES = st.lists(
    st.tuples(
        PLACES,
        st.lists(METRIC, max_size=3),
        st.none() | st.integers(0, 300),
        st.booleans(),
        st.integers(0, 70),
    ),
    max_size=20,
)


@given(MESSAGES, st.booleans())
def test_whatever_nodes_say_is_followed_and_counted_right(
    messages: list[tuple[str, list[dict[str, object]], int | None, bool, int]], asks: bool
) -> None:
    """Nothing raises; after the deaths of all nodes nothing is left of the bounds."""
    heard = Heard(asks=asks)
    for place, metrics, seq, is_old, seconds in messages:
        changes = heard(place, written(*metrics, seq=seq), is_old=is_old)
        assert all(row.values.keys() <= {"Temp", "Level"} for row in changes.rows)
        assert asks or not changes.rebirths
        heard.later(seconds)
    heard("g/NDEATH/n", written())
    assert heard.session.known() == []
    assert heard.session.used() == (0, 0)
