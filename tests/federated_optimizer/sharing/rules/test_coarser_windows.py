"""Groups of windows over groups of shorter windows: exactly their own rows, or no answer."""

from itertools import product

import pytest

from federated_optimizer.sharing.rules import coarser_groups, coarser_windows, same
from tests.federated_optimizer.sharing.readings_shop import answered, checked, normalized

TENS = (
    "SELECT a, window_start, window_end, COUNT(*) AS n, MAX(x) AS hi, SUM(x % 1000) AS t "
    "FROM TUMBLE(r, at, INTERVAL '10 minutes') GROUP BY a, window_start, window_end"
)
HOURS = (
    "SELECT window_start, COUNT(*) AS c, MAX(x) AS hi FROM TUMBLE(r, at, INTERVAL '1 hour') {} "
    "GROUP BY window_start"
)
ANSWERED = (
    (HOURS.format(""), TENS),
    (HOURS.format("WHERE a > 1"), TENS),
    (HOURS.format("").replace("window_start", "window_end"), TENS),
    (HOURS.format("").replace("window_start,", "window_start, a,") + ", a", TENS),
    (HOURS.format("").replace("'1 hour'", "'30 minutes', INTERVAL '20 minutes'"), TENS),
    (HOURS.format("").replace("TUMBLE(r, at,", "HOP(r, at, INTERVAL '20 minutes',"), TENS),
    (HOURS.format("").replace("TUMBLE(r, at,", "HOP(r, at, INTERVAL '10 minutes',"), TENS),
)
REFUSED = (
    (HOURS.format("").replace("1 hour", "15 minutes"), TENS, "borders within windows"),
    (HOURS.format("").replace("'1 hour'", "'1 hour', INTERVAL '5 minutes'"), TENS, "borders"),
    (HOURS.format("").replace("TUMBLE(r, at,", "HOP(r, at, INTERVAL '15 minutes',"), TENS, "hops"),
    (HOURS.format("WHERE s = 'x'"), TENS, "not all of the rows of a group"),
    (HOURS.format("").replace("(r, at", "(q, at"), TENS, "other rows"),
    (HOURS.format("").replace("MAX(x)", "MIN(x)"), TENS, "another function"),
    (
        HOURS.format(""),
        TENS.replace("TUMBLE(r, at,", "HOP(r, at, INTERVAL '5 minutes',"),
        "overlapping windows count a row twice",
    ),
    (HOURS.format(""), TENS.replace("window_start, window_end, C", "C"), "no window is shown"),
    (TENS, HOURS.format(""), "longer windows"),
)


@pytest.mark.parametrize(("wanted", "offered"), ANSWERED)
def test_groups_come_from_shorter_windows(wanted: str, offered: str) -> None:
    assert answered(coarser_windows.answer, wanted, offered) is not None


@pytest.mark.parametrize(("wanted", "offered", "why"), REFUSED)
def test_others_are_refused(wanted: str, offered: str, why: str) -> None:
    assert answered(coarser_windows.answer, wanted, offered) is None, why


def test_a_condition_below_equal_windows_is_one_above_the_node() -> None:
    wanted = TENS.replace("GROUP", "WHERE a = 1 GROUP")
    assert answered(coarser_groups.answer, wanted, TENS) is not None
    renamed = TENS.replace(" AS n", " AS c")
    assert answered(same.answer, renamed, TENS) is not None


def test_no_answer_among_windows_is_wrong() -> None:
    minutes = ("5 minutes", "10 minutes", "15 minutes", "30 minutes", "1 hour")
    shapes = [
        *(f"TUMBLE(r, at, INTERVAL '{size}')" for size in minutes),
        *(f"TUMBLE(r, at, INTERVAL '{size}', INTERVAL '5 minutes')" for size in minutes[1:]),
        *(
            f"HOP(r, at, INTERVAL '{hop}', INTERVAL '{size}')"
            for hop, size in product(minutes, minutes)
        ),
    ]
    text = "SELECT window_start, window_end, COUNT(*) AS n, MIN(x) AS lo FROM {} GROUP BY 1, 2"
    plans = [normalized(text.format(shape)) for shape in shapes]
    found = 0
    for ours, theirs in product(plans, plans):
        found += checked(coarser_windows.answer, ours, theirs) is not None
    assert found > 60
