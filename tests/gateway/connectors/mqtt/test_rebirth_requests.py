"""Nodes are asked seldom, not all at once, and by a payload that others read."""

import itertools

from gateway.connectors.mqtt.rebirth_requests import (
    A_SECOND,
    AT_ONCE,
    MAX_NODES,
    PAUSE_MOST_SECONDS,
    RebirthRequests,
    rebirth_command,
    rebirth_topic,
)
from tests.streamsql.mapping.sparkplug.written import NOON, PAYLOAD

SECOND = 1_000_000
START = NOON * 1_000
NODE = ("plant", "line1")


def asked(requests: RebirthRequests, now: int) -> int:
    return len(list(requests.due(now)))


def test_the_command_is_what_the_protobuf_library_reads() -> None:
    command = PAYLOAD.FromString(rebirth_command(START))
    (metric,) = command.metrics
    assert (metric.name, metric.datatype, metric.boolean_value) == (
        "Node Control/Rebirth",
        11,
        True,
    )
    assert command.timestamp == metric.timestamp == NOON
    assert rebirth_topic(NODE) == "spBv1.0/plant/NCMD/line1"


def test_the_pause_between_two_commands_to_a_node_doubles() -> None:
    requests, times = RebirthRequests(), []
    for second in range(4_000):
        requests.want("s", NODE, "a gap")
        times += [second] * asked(requests, START + second * SECOND)
    pauses = [later - before for before, later in itertools.pairwise(times)]
    assert pauses[:7] == [10, 20, 40, 80, 160, 320, PAUSE_MOST_SECONDS]
    calm = START + (times[-1] + 3_601) * SECOND
    for later in (0, 9, 10):
        requests.want("s", NODE, "a gap")
        assert asked(requests, calm + later * SECOND) == (later != 9)


def test_a_birth_answers_and_silence_is_a_problem() -> None:
    requests = RebirthRequests()
    found = []
    for second in (0, 10, 30, 70):
        requests.want("s", NODE, "a gap")
        found += [is_unanswered for *_, is_unanswered in requests.due(START + second * SECOND)]
    assert found == [False, False, True, True]
    requests.want("s", NODE, "a gap")
    requests.has_birth(NODE)
    assert asked(requests, START + 1_000 * SECOND) == 0
    requests.want("s", NODE, "a gap")
    assert [last for *_, last in requests.due(START + 2_000 * SECOND)] == [False]


def test_many_nodes_are_asked_one_after_the_other() -> None:
    requests = RebirthRequests()
    for number in range(100):
        requests.want("s", ("plant", f"n{number}"), "a gap")
    assert asked(requests, START) == AT_ONCE
    assert asked(requests, START) == 0
    assert asked(requests, START + SECOND) == A_SECOND
    assert asked(requests, START + 60 * SECOND) == AT_ONCE


def test_the_nodes_that_are_remembered_are_bounded() -> None:
    requests = RebirthRequests()
    for number in range(2 * MAX_NODES):
        requests.want("s", ("plant", f"n{number}"), "a gap")
    found = sum(asked(requests, START + second * 2 * SECOND) for second in range(600))
    assert found == MAX_NODES


def test_no_node_is_asked_a_second_time_before_others_were_asked_once() -> None:
    requests, found = RebirthRequests(), set[str]()
    for second in range(30):
        for number in range(200):  # all of them go on sending, and answer nothing
            requests.want("s", ("plant", f"n{number}"), "a gap")
        found |= {name for (_, name), *_ in requests.due(START + second * SECOND)}
    assert len(found) == 200


def test_invented_nodes_of_one_source_keep_no_node_of_another_one_from_being_asked() -> None:
    requests = RebirthRequests()
    for number in range(3 * MAX_NODES):
        requests.want("flooded", ("plant", f"n{number}"), "no birth")
    requests.want("calm", NODE, "a gap")
    for number in range(3 * MAX_NODES):
        requests.want("flooded", ("plant", f"m{number}"), "no birth")
    assert NODE in [node for node, *_ in requests.due(START)]


def test_a_node_that_waits_keeps_its_turn_when_others_come() -> None:
    requests = RebirthRequests()
    requests.want("s", NODE, "a gap")
    for number in range(3 * MAX_NODES):
        requests.want("s", ("plant", f"n{number}"), "no birth")
    assert NODE in [node for node, *_ in requests.due(START)]


def test_a_node_that_two_sources_want_is_asked_once() -> None:
    requests = RebirthRequests()
    for source in "ab":
        requests.want(source, NODE, "a gap")
    assert asked(requests, START) == 1
    requests.want("b", NODE, "a gap")
    assert asked(requests, START + 5 * SECOND) == 0
    assert asked(requests, START + 10 * SECOND) == 1
