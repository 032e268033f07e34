"""Trials on history in a real browser."""

import json
from dataclasses import replace
from typing import Any

import pytest

from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.contract.history_model import HistoryTrialInfo, PastChange
from host.clocks import wall_clock
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.syntax import RunOnHistory, parse_script

pytestmark = pytest.mark.browser

NOON = 1_793_188_800_000_000
HOUR = 3_600_000_000
SECOND = 1_000_000
ROOMS = Schema.of(("room", DataType.TEXT))
RUNNING = HistoryTrialInfo(
    "t1", "", None, "RUN busy ON HISTORY", ROOMS, NOON - HOUR, NOON, at=NOON - HOUR // 2
)


def test_a_trial_is_begun_followed_and_stopped(console: Any, page: Any, expect: Any) -> None:
    sent: list[str] = []
    past = console.coordinator.past

    def begin(route: Any) -> None:
        sent.append(route.request.post_data_json["text"])
        past.put(RUNNING, *(PastChange(NOON - HOUR + n * SECOND, 1, ("<b>x",)) for n in range(250)))
        answer = {"kind": "done", "message": "", "warnings": [], "data": {"trial": "t1"}}
        route.fulfill(status=200, content_type="application/json", body=json.dumps([answer]))

    page.route("**/api/statements", begin)
    page.goto(f"{console.address}/queries")
    page.get_by_label("StreamSQL statement").fill("SELECT mid\nFROM SeatSensor;")
    page.get_by_role("link", name="Try on history").click()
    expect(page.get_by_label("StreamSQL statement")).to_contain_text("FROM SeatSensor")
    page.get_by_label("Interval").select_option("From … to …")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#problem")).to_contain_text("Fill in From and To")
    page.get_by_label("Interval").select_option("Yesterday")
    page.get_by_label("Speed").select_option("An hour per second")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#progress")).to_have_js_property("value", 0.5)
    (statement,) = parse_script(sent[0])
    assert isinstance(statement, RunOnHistory)
    since, until = statement.interval(wall_clock())
    assert (until - since) % (23 * HOUR) in (0, HOUR, 2 * HOUR)
    assert statement.speed == 3600
    rows = page.locator("#changes tbody tr")
    expect(rows).to_have_count(100)
    expect(rows.first).to_contain_text("<b>x")
    expect(page.get_by_role("img", name="Rows over time, at most 250")).to_be_visible()
    page.get_by_role("button", name="Later").click()
    page.get_by_role("button", name="Later").click()
    expect(rows).to_have_count(50)
    expect(page.locator("#place")).to_have_text("201 to 250 of 250")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#trial-problem")).to_contain_text("it was stopped")
    assert past.infos["t1"].done


def test_an_alarm_is_a_bar_while_it_is_raised(
    console: Any, client: Any, page: Any, expect: Any
) -> None:
    text = "CREATE ALARM hot AS SELECT mid FROM SeatSensor SEVERITY 'warning'"
    assert client.post("/api/statements", json={"text": text}).is_success
    info = replace(RUNNING, text="RUN hot ON HISTORY", alarm="hot", done=True, notes=("late",))
    console.coordinator.past.put(
        info,
        PastChange(NOON - HOUR, 1, ("r1",)),
        PastChange(NOON - HOUR // 2, 0, ("r1",), AlarmState.RAISED),
        PastChange(NOON - HOUR // 4, 0, ("r1",), AlarmState.CLEARED),
        PastChange(NOON - HOUR // 4, 0, ("r2",), AlarmState.RAISED),
    )
    page.goto(f"{console.address}/alarms")
    page.get_by_role("link", name="Try on history").click()
    expect(page.get_by_label("StreamSQL statement")).to_contain_text("hot")
    page.locator("#trials button", has_text="RUN hot").click()
    picture = page.get_by_role("img", name="Alarm hot: 2 rows raised it")
    expect(picture.locator("rect.raised")).to_have_count(2)
    first, second = (picture.locator("rect").nth(n) for n in (0, 1))
    widths = [float(each.get_attribute("width")) for each in (first, second)]
    assert widths[0] == pytest.approx((720 - 54 - 8) / 4)
    assert widths[1] == pytest.approx(widths[0])  # it has not cleared when the interval ends
    expect(page.locator("#changes tbody tr")).to_have_count(3)
    expect(page.locator("#pager")).to_be_hidden()
    expect(page.locator("#notes")).to_have_text("late")


def test_a_federation_without_a_lake_says_what_to_do(console: Any, page: Any, expect: Any) -> None:
    problem = {"code": "no_lake", "message": "no lake", "hint": "start it with Spark"}
    page.route("**/api/lake", lambda route: route.fulfill(status=400, json={"error": problem}))
    page.goto(f"{console.address}/history")
    expect(page.locator("#problem")).to_contain_text("start it with Spark")
    expect(page.locator("#trials")).to_contain_text("Nothing has been tried yet.")
