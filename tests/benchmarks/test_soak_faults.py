"""The soak under faults: its judges find what is wrong, and a first look finds nothing."""

import itertools
import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks._soak.closing import Windows
from benchmarks._soak.faults import QUICK
from benchmarks._soak.federation import find_faketime
from benchmarks._soak.feed import ALARM, GATEWAYS, PERIOD, WINDOW, make_feed
from benchmarks._soak.raised import Raised
from benchmarks._soak.truth import Match, Rows, Truth
from deploy.cli.bench import BENCHMARKS
from streamsql.data.types import timestamp_text

BEGIN = 600 * WINDOW
ROUNDS = 12
FEED = make_feed(7, BEGIN, ROUNDS)
TRUTH = Truth(FEED)
END = BEGIN + ROUNDS * PERIOD
CLOCKS = dict.fromkeys(GATEWAYS, END)
NOBODY: frozenset[str] = frozenset()
Places = dict[str, int | None]


def places_of(name: str, rows: Rows, away: frozenset[str] = NOBODY) -> Places | None:
    """Return the moments at which these are the rows of a query."""
    question = TRUTH.questions[name]
    floors = {gateway: TRUTH.first(question, gateway) for gateway in GATEWAYS}
    found = TRUTH.match(question, rows, floors, CLOCKS, away)
    return None if found is None else found.newest


def all_read(name: str) -> Places:
    """Return the end of all recordings."""
    question = TRUTH.questions[name]
    return {gateway: len(TRUTH.times(question, gateway)) for gateway in GATEWAYS}


@pytest.mark.parametrize("name", TRUTH.questions)
def test_the_truth_is_found_and_a_row_more_or_less_is_not(name: str) -> None:
    question = TRUTH.questions[name]
    rows = question.answer(all_read(name))
    assert rows
    found = places_of(name, rows)
    assert found is not None
    assert question.answer(found) == rows
    assert places_of(name, rows | {("gw-1", 5, 5)}) is None
    lacking = rows - {max(rows, key=str)}
    found = places_of(name, lacking)
    assert found is None or question.answer(found) == lacking
    assert found != all_read(name)


@pytest.mark.parametrize("name", ["filter", "join", "reach", "total"])
def test_rows_of_a_gateway_are_missing_only_while_it_is_said_to_be_away(name: str) -> None:
    rows = TRUTH.questions[name].answer({**all_read(name), "gw-2": None})
    assert places_of(name, rows, frozenset({"gw-2"})) is not None
    found = places_of(name, rows)
    assert found is None or found["gw-2"] is not None
    assert found is None or name == "reach"  # another moment may have no link either


def test_an_answer_does_not_go_back_nor_ahead_of_the_clock() -> None:
    question = TRUTH.questions["total"]
    halfway: Places = dict.fromkeys(GATEWAYS, 10)
    rows = question.answer(halfway)
    assert TRUTH.match(question, rows, {}, CLOCKS, NOBODY) == Match(halfway, halfway)  # type: ignore[arg-type]
    assert TRUTH.match(question, rows, {"gw-1": 11}, CLOCKS, NOBODY) is None
    early = dict.fromkeys(GATEWAYS, BEGIN + 2 * PERIOD)
    assert TRUTH.match(question, rows, {}, early, NOBODY) is None


def test_last_rows_may_lack_what_came_in_during_a_named_gap_and_no_more() -> None:
    cars = sorted((c for g in GATEWAYS for c in FEED[g].cars), key=lambda car: car.ts)
    rows = frozenset((car.lane, car.n, car.ts) for car in (*cars[-15:-10], *cars[-2:]))
    lost = [(float(cars[-10].ts), float(cars[-3].ts))]
    assert TRUTH.explained("last", rows, CLOCKS, lost)
    assert not TRUTH.explained("last", rows, CLOCKS, [(0.0, 1.0)])
    assert not TRUTH.explained("last", rows | {("gw-1", 1, 5)}, CLOCKS, lost)


def window(end: int, **counts: int) -> tuple[int, int, int]:
    """Return a window with so many readings of each gateway."""
    numbers = [counts.get(name.replace("-", "_"), 4) for name in GATEWAYS]
    return end, sum(numbers), sum(n * 1_000**place for place, n in enumerate(numbers))


def never(_gateway: str, _end: int) -> bool:
    return False


FIRST, SECOND_ONE, THIRD = (BEGIN + n * WINDOW for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([window(FIRST), window(SECOND_ONE)], ""),
        ([window(FIRST), window(FIRST)], "listed 2 times"),
        ([window(FIRST), window(FIRST, gw_2=3)], "has 2 rows"),
        ([window(FIRST, gw_2=3)], "has 3 of 4 readings of gw-2"),
        ([window(FIRST, gw_2=0)], "has 0 of 4 readings of gw-2"),
        ([window(FIRST, gw_2=5)], "has 5 of 4 readings of gw-2"),
        ([window(FIRST), window(THIRD)], "was never given"),
    ],
)
def test_windows_are_whole_given_once_and_in_turn(
    rows: list[tuple[int, int, int]], complaint: str
) -> None:
    found = Windows(FEED).check(rows, never, is_whole=True)
    assert any(complaint in lie for lie in found) if complaint else found == []


def test_a_window_that_was_given_neither_changes_nor_goes() -> None:
    windows = Windows(FEED)
    assert windows.check([window(FIRST, gw_2=0)], lambda *_: True, is_whole=True) == []
    assert windows.check([window(FIRST)], never, is_whole=False)
    assert windows.check([], never, is_whole=True)


def test_an_alarm_may_be_cleared_only_when_its_row_is_over() -> None:
    seats = FEED["gw-1"].seats
    start, over = next(
        (high, low)
        for high, low in itertools.combinations(seats, 2)
        if high.mid == low.mid and high.value >= ALARM > low.value
    )
    mid = start.mid
    row: dict[str, Any] = {
        "id": 1,
        "state": "cleared",
        "row": {"mid": mid},
        "raised": timestamp_text(start.ts + 1),
        "cleared": timestamp_text(over.ts),
        "acknowledged": None,
    }
    early, late = (dict.fromkeys(GATEWAYS, over.ts + step) for step in (-1, 1))
    lie = f"{mid} is cleared and was above {ALARM} all the time"
    assert Raised(FEED).check([row], early) == [lie]
    assert Raised(FEED).check([row], late) == []


def test_an_acknowledgement_is_kept() -> None:
    raised = Raised(FEED)
    row: dict[str, Any] = {"id": 1, "state": "unknown", "raised": "x", "cleared": None}
    assert raised.check([{**row, "acknowledged": "x"}], CLOCKS) == []
    assert raised.check([{**row, "acknowledged": None}], CLOCKS)


@pytest.mark.end_to_end
@pytest.mark.timeout(900)
def test_a_first_look_under_faults_finds_no_wrong_row_and_no_false_word() -> None:
    assert find_faketime() is not None, "install faketime: a clock is set here"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak_faults", "--quick", "--json"],
        cwd=BENCHMARKS.parent,
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    found = json.loads(done.stdout)
    assert found["faults"].keys() == {str(kind) for kind in QUICK}
    parts = [found["without fault"], *found["faults"].values()]
    for what in ("wrong", "unnamed", "false_gaps", "false_words"):
        assert sum(part[what] for part in parts) == 0, found["lies"]
    assert sum(part["right"] for part in parts) > 50
    assert found["windows"]["given"] > 3
