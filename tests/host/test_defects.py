"""A loop that meets defects goes on, says so once a minute, and ends when they stay."""

import logging

import pytest

from host.defects import MAX_IN_A_ROW, Defects

ERROR = ZeroDivisionError("a defect")


def test_it_ends_when_defects_stay() -> None:
    met = Defects("a step", "the site")
    for _ in range(3):
        assert all(met.survives(ERROR) for _ in range(MAX_IN_A_ROW - 1))
        met.passed()
    assert [met.survives(ERROR) for _ in range(MAX_IN_A_ROW)] == [True] * (MAX_IN_A_ROW - 1) + [
        False
    ]
    assert met.count == 4 * MAX_IN_A_ROW - 3


def test_the_log_names_one_a_minute_with_its_trace(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    monkeypatch.setattr("host.defects.time.monotonic", lambda: now[0])
    met = Defects("a step", "the site")
    with caplog.at_level(logging.ERROR):
        for now[0] in (100.0, 159.9, 160.0):
            met.survives(ERROR)
    assert [record.getMessage() for record in caplog.records] == [
        "a defect interrupted a step (defect number 1); the site continues",
        "a defect interrupted a step (defect number 3); the site continues",
    ]
    assert "ZeroDivisionError: a defect" in caplog.text
