"""EXPLAIN ALTERNATIVES as people and programs read it."""

import json
from dataclasses import replace

import pytest

from federated_optimizer.coordinator.explaining.alternatives_text import (
    IN_PARTS,
    alternatives_data,
    alternatives_text,
    rejected_lines,
    turn_text,
)
from federated_optimizer.costs.cost import Cost
from federated_optimizer.search.choosing import Alternatives, Listed
from federated_optimizer.search.turning_facts import Turn, Varied
from streamsql.algebra.metrics import metric_of

SHIPPED = Cost(603.0, 301.5, 1206.0, 6.0, 22.0, 1809.0, 0.5, 40.0, 0.25)
FOUND = Alternatives(
    (
        Listed(1, Cost(8.8, 4.4, 17.6, 0.104, 22.0), "push everything: MAX in parts"),
        Listed(
            12,
            Cost(603.0, 301.5, 1206.0, 6.0, 22.0, 1809.0, 0.5, 40.0, 0.25),
            "ship everything: all of t sent",
        ),
    ),
    1,
    "it sends least",
    10,
    ("t: 400 rows",),
)


def test_plans_are_lines_with_the_chosen_one_marked() -> None:
    assert alternatives_text(FOUND).splitlines() == [
        "  plan   bytes/s  range                messages/s  method",
        "*    1       8.8  4.4 to 18                   0.1  push everything: MAX in parts",
        "    12       600  300 to 1,200                  6  ship everything: all of t sent",
        "Chosen: plan 1, because it sends least.",
        "Left out: 10 other plans.",
        "Assumed: t: 400 rows",
    ]


def test_numbers_that_are_wider_than_their_columns_stay_apart() -> None:
    huge = Listed(10_000, Cost(3.1e19, 2.6e17, 6.4e18, 9.2e17, 22.0), "ship everything")
    _, line, *_ = alternatives_text(replace(FOUND, listed=(huge, FOUND.listed[0]))).splitlines()
    sent, least, most = ("31" + "0" * 18, "26" + "0" * 16, "64" + "0" * 17)
    numbers = [sent, least, "to", most, "92" + "0" * 16]
    assert line.replace(",", "").split() == ["10000", *numbers, "ship", "everything"]


def test_times_are_shown_where_they_differ() -> None:
    slow = replace(FOUND.listed[1], cost=replace(FOUND.listed[1].cost, milliseconds=44.0))
    head, first, second, *_ = alternatives_text(
        replace(FOUND, listed=(FOUND.listed[0], slow))
    ).splitlines()
    assert head.endswith("messages/s    ms  method")
    assert "0.1    22  push everything" in first
    assert "6    44  ship everything" in second


def test_plans_are_data() -> None:
    data = json.loads(json.dumps(alternatives_data(FOUND)))
    assert (data["version"], data["chosen"], data["left_out"]) == (1, 1, 10)
    assert data["metric"] == "bytes"
    assert data["plans"][1] == {
        "plan": 12,
        "method": "ship everything: all of t sent",
        "whole_changes": True,
        "cost": 603.0,
        "bytes_per_second": 603.0,
        "least_bytes_per_second": 301.5,
        "most_bytes_per_second": 1206.0,
        "messages_per_second": 6.0,
        "milliseconds": 22.0,
        "microjoules_per_second": 1809.0,
        "cpu_milliseconds_per_second": 0.5,
        "bytes_kept": 40,
        "engine_milliseconds_per_second": 0.25,
    }


def test_costs_that_the_metric_weighs_are_columns() -> None:
    by_energy = replace(FOUND, metric=metric_of("energy"))
    assert alternatives_text(by_energy).splitlines()[:3] == [
        "  plan   bytes/s  range                messages/s    energy  method",
        "*    1       8.8  4.4 to 18                   0.1         0"
        "  push everything: MAX in parts",
        "    12       600  300 to 1,200                  6     1,800"
        "  ship everything: all of t sent",
    ]
    mixed = replace(FOUND, metric=metric_of("messages 100, latency 2, state 0.1"))
    head, _, second, *_ = alternatives_text(mixed).splitlines()
    assert head.split() == [
        "plan",
        "bytes/s",
        "range",
        "messages/s",
        "ms",
        "state",
        "cost",
        "method",
    ]
    assert second.split()[:9] == ["12", "600", "300", "to", "1,200", "6", "22", "40", "650"]
    assert alternatives_data(mixed)["plans"][1]["cost"] == 6 * 100 + 22 * 2 + 40 * 0.1
    assert alternatives_data(mixed)["metric"] == "messages 100, latency 2, state 0.1"


def test_what_heuristics_leave_out_is_told() -> None:
    left_out = "InnerJoin [product] at its gateways: no product (heuristics = 'no' considers it)"
    found = replace(FOUND, not_considered=(left_out,))
    assert f"Not considered: {left_out}." in alternatives_text(found).splitlines()
    assert alternatives_data(found)["not_considered"] == [left_out]


def test_plans_that_may_show_parts_of_a_change_are_named() -> None:
    first, second, *others = FOUND.listed
    parts = replace(FOUND, listed=(first, replace(second, whole_changes=False), *others))
    (line,) = set(alternatives_text(parts).splitlines()) - set(
        alternatives_text(FOUND).splitlines()
    )
    assert line == f"Plan 12: {IN_PARTS}."
    assert IN_PARTS not in "".join(rejected_lines(parts, ()))
    assert rejected_lines(replace(parts, chosen=12), ())[1] == f"  {IN_PARTS}"
    assert [each["whole_changes"] for each in alternatives_data(parts)["plans"]][:2] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (
            Turn(12, Varied.CHANGES, "t", "", 1.0, 4.21, assumed=False, taken=True),
            "would be taken if t changed more than 4.2 rows a second (now 1)",
        ),
        (
            Turn(12, Varied.ROWS, "t", "", 400.0, 9.9, assumed=True, taken=False),
            "would cost less than plan 1 if t had fewer than 9.9 rows (assumed 400)",
        ),
        (
            Turn(12, Varied.SHARE, "t", "v > 3", 0.1, 0.55, assumed=False, taken=True),
            "would be taken if more than 55 % of t passed v > 3 (now 10 %)",
        ),
        (
            Turn(12, Varied.DISTINCT, "t.room", "", 12.0, 900.0, assumed=False, taken=True),
            "would be taken if t.room had more than 900 values (now 12)",
        ),
    ],
)
def test_the_fact_that_turns_the_choice_is_named(turn: Turn, words: str) -> None:
    assert turn_text(turn, 1) == words
    assert f"Plan 12 {words}." in alternatives_text(FOUND, (turn,)).splitlines()
    rejected = rejected_lines(FOUND, (turn,))
    assert rejected[0].startswith("Plan 1 of 12: 8.8 bytes/s (4.4 to 18), because it sends least")
    assert rejected[1].endswith(f": ship everything: all of t sent; {words}")
    assert alternatives_data(FOUND, (turn,))["turns"][0]["text"] == words


@pytest.mark.parametrize(
    ("metric", "chosen", "rejected"),
    [
        ("bytes", "8.8 bytes/s (4.4 to 18)", "600 bytes/s (300 to 1,200)"),
        ("latency", "22 ms, 8.8 bytes/s (4.4 to 18)", "22 ms, 600 bytes/s (300 to 1,200)"),
        ("state", "0 bytes kept, 8.8 bytes/s (4.4 to 18)", "40 bytes kept, 600 bytes/s"),
        (
            "messages 10, state 2",
            "1 by messages 10, state 2, 8.8 bytes/s",
            "140 by messages 10, state 2, 600 bytes/s",
        ),
    ],
)
def test_prices_are_told_by_what_was_compared(metric: str, chosen: str, rejected: str) -> None:
    lines = rejected_lines(replace(FOUND, metric=metric_of(metric)), ())
    assert lines[0].startswith(f"Plan 1 of 12: {chosen}")
    assert lines[1].startswith(f"  rejected: plan 12: {rejected}")
