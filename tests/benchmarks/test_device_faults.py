"""Kills of gateway, broker and devices: the verdict finds losses, and a run finds none."""

import json
import subprocess
import sys

import pytest

from benchmarks._device_faults.kinds import KINDS
from benchmarks._device_faults.number_log import Entry, Event
from benchmarks._device_faults.peers.mqtt import Packets, Tap
from benchmarks._device_faults.verdict import Kill, Verdict, judge
from deploy.cli.bench import BENCHMARKS

OFFERED, ACKNOWLEDGED, PUBLISHED = Event.OFFERED, Event.ACKNOWLEDGED, Event.PUBLISHED
Lines = list[tuple[Event, int, int, float]]


def verdict(name: str, lines: Lines, rows: dict[int, int], *kills: Kill, lane: int = 0) -> Verdict:
    """Return the verdict on a log of one lane: (event, first, last, seconds)."""
    entries = [Entry(event, lane, first, last, at) for event, first, last, at in lines]
    return judge(KINDS[name], entries, rows, kills)


def once(*numbers: int) -> dict[int, int]:
    """Return one row of each number."""
    return dict.fromkeys(numbers, 1)


def test_what_was_acknowledged_and_has_not_come_is_lost() -> None:
    lines: Lines = [(OFFERED, 0, 4, 1.0), (ACKNOWLEDGED, 0, 2, 1.1)]
    found = verdict("http_push", lines, once(0, 2))
    assert (found.acknowledged, found.lost, found.lost_before) == (3, 1, 2)
    assert found.problems == ["1 lost after acknowledgement, such as 1"]
    assert not verdict("http_push", lines, once(0, 1, 2)).problems


def test_a_stored_number_must_come_even_if_nobody_has_read_it() -> None:
    assert verdict("file", [(ACKNOWLEDGED, 0, 3, 1.0)], once(0, 1, 2)).lost == 1


def test_numbers_that_only_the_devices_broker_had_are_lost_before_acknowledgement() -> None:
    lines: Lines = [(PUBLISHED, 0, 2, 1.0), (OFFERED, 0, 0, 1.1), (ACKNOWLEDGED, 0, 0, 1.2)]
    found = verdict("mqtt", lines, once(0))
    assert (found.sent, found.lost, found.lost_before) == (3, 0, 2)


@pytest.mark.parametrize(
    ("kills", "acknowledged"),
    [
        ([], 2),
        ([Kill("gateway", 1.5, 1.6)], 1),
        ([Kill("modbus", 0.9, 1.1)], 1),  # killed before it was read, dead while it was logged
        ([Kill("broker", 1.5, 1.6)], 2),
        ([Kill("snmp", 1.5, 1.6)], 2),  # another device
    ],
)
def test_a_polled_number_counts_when_the_same_gateway_asks_for_the_next_one(
    kills: list[Kill], acknowledged: int
) -> None:
    lines: Lines = [(OFFERED, 0, 0, 1.0), (OFFERED, 1, 1, 2.0), (OFFERED, 2, 2, 3.0)]
    found = verdict("modbus", lines, {}, *kills)
    assert (found.acknowledged, found.lost) == (acknowledged, acknowledged)


def test_a_request_that_may_be_a_repeated_one_acknowledges_nothing() -> None:
    lines: Lines = [(OFFERED, 0, 0, 1.0), (OFFERED, 1, 1, 7.0)]
    assert verdict("snmp", lines, {}).acknowledged == 0


def test_the_last_number_of_a_resource_must_come() -> None:
    lines: Lines = [(OFFERED, 0, 0, 1.0), (OFFERED, 10, 10, 2.0)]
    assert verdict("coap", lines, once(10)).lost == 0
    assert verdict("coap", lines, once(0)).lost == 1


def test_rows_are_doubled_at_most_as_often_as_their_device_has_sent_them() -> None:
    lines: Lines = [(OFFERED, 0, 9, 1.0), (OFFERED, 5, 9, 2.0), (ACKNOWLEDGED, 0, 9, 3.0)]
    kill = Kill("gateway", 1.5, 1.6)
    again = once(*range(10)) | dict.fromkeys(range(5, 10), 2)
    assert not verdict("http_push", lines, again, kill).problems
    (problem,) = verdict("http_push", lines, again | {0: 2}, kill).problems
    assert problem == "1 doubled that the device handed out once"
    assert (
        "5 doubled before acknowledgement, where 0 may be"
        in verdict("http_push", lines, again).problems
    )


def test_what_a_device_sends_again_after_acknowledgement_it_has_forgotten() -> None:
    lines: Lines = [(OFFERED, 0, 9, 1.0), (ACKNOWLEDGED, 0, 4, 1.1), (OFFERED, 3, 9, 2.0)]
    again = once(*range(10)) | dict.fromkeys(range(3, 10), 2)
    found = verdict("mqtt", lines, again)
    assert (found.doubled, found.forgotten) == (7, 2)
    assert found.problems == ["5 doubled before acknowledgement, where 0 may be"]
    assert verdict("mqtt", lines, once(*range(10))).forgotten == 0


@pytest.mark.parametrize("name", ["file", "sql", "modbus", "http"])
def test_where_nothing_is_sent_again_no_row_comes_twice(name: str) -> None:
    lines: Lines = [(OFFERED, 0, 1, 1.0), (ACKNOWLEDGED, 0, 1, 1.0)]
    kills = [Kill("gateway", 1.5, 1.6), Kill(name, 1.7, 1.8)]
    assert verdict(name, lines, {0: 1, 1: 2}, *kills).problems


def test_a_row_of_no_number_is_found() -> None:
    assert verdict("file", [(ACKNOWLEDGED, 0, 0, 1.0)], once(0, 7)).problems == [
        "1 that were never sent"
    ]


def test_the_tap_tells_which_numbers_the_gateway_has_acknowledged() -> None:
    logged: list[tuple[Event, list[tuple[int, int]]]] = []

    class Log:
        """Keeps what is logged."""

        def add_all(self, event: Event, spans: object) -> None:
            logged.append((event, list(spans)))  # type: ignore[call-overload]

    tap = Tap(Log())  # type: ignore[arg-type]
    body = b"\0\x09numbers/a\0\x07\0"  # topic, packet 7, no properties
    publish = bytes([0x32, len(body) + 8]) + body + b'{"n": 3}'
    for part in (publish[:4], publish[4:]):
        tap.delivered(part)
    tap.answered(b"\x40\x02\0\x06")  # of a packet that is no number
    tap.answered(b"\x40\x02\0\x07")
    assert logged == [(OFFERED, [(3, 3)]), (ACKNOWLEDGED, [(3, 3)])]


def test_packets_are_cut_at_their_lengths_of_several_bytes() -> None:
    packets = Packets()
    data = b"\x30\x80\x01" + b"x" * 128 + b"\x40\x00"
    found = [packet for byte in data for packet in packets.cut(bytes([byte]))]
    assert found == [(0x30, b"x" * 128), (0x40, b"")]


@pytest.mark.broker
@pytest.mark.end_to_end
@pytest.mark.timeout(600)
def test_no_connector_loses_what_was_acknowledged() -> None:
    command = [sys.executable, "-m", "benchmarks.device_faults", "--quick", "--json"]
    done = subprocess.run(
        command, cwd=BENCHMARKS.parent, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    found = json.loads(done.stdout)["connectors"]
    assert found.keys() == KINDS.keys()
    for name, connector in found.items():
        assert connector["lost"] == 0, name
        assert connector["kills"]["gateway"] >= 2, name
        assert connector["kills"].keys() == {"gateway", "broker", name}
        assert connector["acknowledged"] > 0, name
        assert connector["arrived"] >= connector["acknowledged"], name
