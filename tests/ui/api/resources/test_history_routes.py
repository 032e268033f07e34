"""REST: trials of queries on the past."""

from typing import Any

import httpx

from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.contract.history_model import HistoryTrialInfo, PastChange
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

NOON = 1_780_308_000_000_000
HOUR = 3_600_000_000
COLUMNS = Schema.of(("room", DataType.TEXT), ("since", DataType.TIMESTAMP))
INFO = HistoryTrialInfo(
    "5f2c",
    "local",
    None,
    "RUN hot ON HISTORY BETWEEN …",
    COLUMNS,
    NOON,
    NOON + HOUR,
    alarm="hot",
    at=NOON + HOUR // 2,
    readings=1_000,
    seconds=0.5,
    notes=("rows of Machines are those that are there now",),
)


def test_a_trial_is_read_piece_by_piece(client: httpx.Client, console: Any) -> None:
    changes = [PastChange(NOON + n, 1, (f"r{n}", NOON)) for n in range(1_500)]
    changes.append(PastChange(NOON + 9, 0, ("r9", None), AlarmState.RAISED))
    console.coordinator.past.put(INFO, *changes)
    (listed,) = client.get("/api/history/trials").json()
    assert (listed["id"], listed["share"], listed["events"]) == ("5f2c", 0.5, 1_501)
    first = client.get("/api/history/trials/5f2c").json()
    assert (len(first["changes"]), first["next"], first["done"]) == (1_000, 1_000, False)
    assert first["changes"][0] == {
        "ts": "2026-06-01T10:00:00Z",
        "diff": 1,
        "row": {"room": "r0", "since": "2026-06-01T10:00:00Z"},
        "alarm": None,
    }
    rest = client.get("/api/history/trials/5f2c", params={"since": first["next"]}).json()
    assert (len(rest["changes"]), rest["next"]) == (501, 1_501)
    assert rest["changes"][-1]["alarm"] == "raised"


def test_a_trial_is_stopped(client: httpx.Client, console: Any) -> None:
    console.coordinator.past.put(INFO)
    stopped = client.delete("/api/history/trials/5f2c").json()
    assert (stopped["done"], stopped["problem"]) == (True, "it was stopped")


def test_an_unknown_trial_is_not_found(client: httpx.Client) -> None:
    for answer in (
        client.get("/api/history/trials/none"),
        client.delete("/api/history/trials/none"),
    ):
        assert answer.status_code == 404
        assert "there is no trial 'none'" in answer.text
