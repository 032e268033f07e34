"""`pando calibrate` on a running federation: set, planned with, kept over a killed console."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.federation import Federation, federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

SMALL = ("--no-spark", "--gateways", "2")
JOIN = """
EXPLAIN (TYPE ALTERNATIVES, FORMAT JSON)
SELECT s.mid FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid WITH (metric = 'cpu')
"""


def _cpu(up: Federation) -> float:
    answer = up.http.post("/api/statements", json={"text": JOIN})
    assert answer.is_success, answer.text
    return float(answer.json()[-1]["data"]["plans"][0]["cpu_milliseconds_per_second"])


def _set_step(up: Federation, microseconds: float) -> None:
    number = {"value": microseconds, "low": microseconds, "high": microseconds}
    body = {"values": {"step_microseconds": number}}
    assert up.http.post("/api/costs", json=body).status_code == 200


def _calibrated(up: Federation) -> dict[str, Any]:
    found = up.http.get("/api/costs").json()
    return {each["name"]: each for each in found if each["origin"] == "calibrated"}


def test_what_is_measured_is_set_and_outlives_the_console(tmp_path: Path) -> None:
    with federation(tmp_path / "data", *SMALL) as up:
        assert _calibrated(up) == {}
        file = tmp_path / "costs.json"
        done = up.pando("calibrate", "--quick", "--json", "--out", str(file))
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told == json.loads(file.read_text(encoding="utf-8"))
        assert (told["console"], told["saved"]) == (up.address, True)
        measured = {each["name"]: each for each in told["constants"]}
        assert {"step_microseconds", "hop_milliseconds", "join_bytes"} <= set(measured)
        known = _calibrated(up)
        for name, each in measured.items():
            if each["origin"] == "calibrated":
                assert known[name]["value"] == pytest.approx(each["value"]), name
        query = up.start_query("SELECT cost, origin FROM sys_costs WHERE origin = 'calibrated'")
        # The static engine may have timed itself meanwhile: that counts more than a calibration.
        up.until(lambda: len(up.rows(query)) == len(_calibrated(up)))

        # Operators that take a hundred times as long make the same plan a dearer one, and back:
        # readings become more frequent in the first minute, which must not look like it.
        step = measured["step_microseconds"]["value"]
        up.until(lambda: _cpu(up) > 0.02)
        before = _cpu(up)
        slow = 100 * step
        _set_step(up, slow)
        dear = _cpu(up)
        assert dear > 5 * before
        _set_step(up, step)
        assert dear > 5 * _cpu(up)
        _set_step(up, slow)
        refused = {"values": {"step_microseconds": {"value": slow, "low": -1.0, "high": slow}}}
        assert up.http.post("/api/costs", json=refused).status_code == 422

        os.kill(up.pid("console"), signal.SIGKILL)
        up.until(lambda: up.event("died", service="console"))
        up.until(lambda: _answers(up))
        assert _calibrated(up)["step_microseconds"]["value"] == pytest.approx(slow)
        assert up.pando("calibrate", "--forget").returncode == 0
        assert _calibrated(up) == {}


def _answers(up: Federation) -> bool:
    try:
        return bool(up.http.get("/api/costs").is_success)
    except httpx.HTTPError:
        return False
