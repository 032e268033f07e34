"""How long a new run has to be beside an older one until its windows hold the same."""

import pytest
from msgspec.structs import replace

from federated_optimizer.coordinator.adaptation.filled_runs import MARGIN, too_long, when_alike
from tests.federated_optimizer.network.test_shareable import ALONE, SHARED, bundle_of

SECOND = 1_000_000
WINDOWS = (
    ("SELECT rid FROM Reading [RANGE 1 MINUTE]", 60),
    ("SELECT rid FROM Reading [RANGE 1 MINUTE SLIDE 30 SECONDS]", 90),
    ("SELECT rid FROM Reading [NOW]", 1),
    ("SELECT a.rid FROM Reading [RANGE 1 MINUTE] a, Reading [RANGE 2 HOURS] b", 7_200),
    ("SELECT COUNT(*) FROM Room r JOIN Reading [RANGE 5 SECONDS] t ON t.rid = r.rid", 5),
)
NEVER = (
    ("SELECT r.rid FROM Reading r, Reading [RANGE 1 MINUTE] s", "no readings of reading"),
    ("SELECT rid FROM Reading [ROWS 5]", "reading"),
    ("SELECT rid FROM sys_stream [RANGE 1 MINUTE] s, Room", "sys_stream"),
    ("ISTREAM(SELECT rid FROM Reading [RANGE 1 MINUTE])", "stream of changes"),
)


@pytest.mark.parametrize(("window", "stays"), [("1 HOUR", False), ("61 MINUTES", True)])
def test_a_window_of_an_hour_is_not_too_long(window: str, stays: bool) -> None:
    found = when_alike(bundle_of(f"SELECT rid FROM Reading [RANGE {window}]"))
    assert bool(too_long(found)) == stays


@pytest.mark.parametrize("text", SHARED)
def test_functions_of_what_sources_hold_take_no_time(text: str) -> None:
    assert when_alike(bundle_of(text)).microseconds == 0
    assert not when_alike(bundle_of(text)).never


@pytest.mark.parametrize(("text", "seconds"), WINDOWS)
def test_windows_by_time_take_their_length(text: str, seconds: int) -> None:
    found = when_alike(bundle_of(text))
    assert (found.microseconds, found.never) == (seconds * SECOND + MARGIN, "")


@pytest.mark.parametrize(("text", "seconds"), WINDOWS)
def test_the_lake_takes_no_time_of_both(text: str, seconds: int) -> None:
    filled = replace(bundle_of(text), fills=("reading",))
    assert when_alike(filled).microseconds == 0
    assert when_alike(replace(filled, fills=("another",))).microseconds > seconds * SECOND


@pytest.mark.parametrize(
    ("text", "why"), [pair for pair in ALONE if "[RANGE" not in pair[0] and "[NOW" not in pair[0]]
)
def test_what_counts_from_the_start_is_never_the_same(text: str, why: str) -> None:
    assert why in when_alike(bundle_of(text)).never


@pytest.mark.parametrize(("text", "why"), NEVER)
def test_no_window_that_forgets_is_over_all_readings(text: str, why: str) -> None:
    filled = replace(bundle_of(text), fills=("reading",))
    for bundle in (bundle_of(text), filled):
        assert why in when_alike(bundle).never
