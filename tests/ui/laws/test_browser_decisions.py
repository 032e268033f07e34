"""Decisions on plans in a real browser: why a query moved, and the bytes before and after."""

from typing import Any

import pytest

from tests.ui.reported_plan import TEXT, ReportedPlan

pytestmark = pytest.mark.browser

_BEGIN = 1_770_000_000_000_000
WHY = "changes a second of roomsensor: 0.01 before, now 10"
PLANS = ("plan 2: Aggregate at the base", "plan 1: push everything")


def decision(number: int, queries: str, outcome: str, *measured: Any) -> tuple[Any, ...]:
    """Return a row of the page's query over sys_decisions."""
    after = PLANS[1] if outcome != "kept" else PLANS[0]
    said = (number, _BEGIN, queries, WHY, outcome, "so it is", PLANS[0], after)
    return (*said, 530.8, 58.8, *(measured or (None,) * 4))


def test_decisions_on_the_shown_plan_are_drawn(
    console: Any, page: Any, expect: Any, problems: Any
) -> None:
    query = console.run(console.coordinator.execute(TEXT))[0].query.id
    plan = ReportedPlan(query)
    rows = [
        decision(1, query, "kept"),
        decision(2, f"{query}, q900", "moved", 520.0, 61.0, 4775, 0.5),
        decision(3, "q900", "given up"),
    ]
    console.coordinator.answers = lambda text: (
        rows if "sys_decisions" in text else plan.answer(text)
    )
    page.goto(f"{console.address}/monitor?query={query}")
    page.wait_for_selector(".operator")
    expect(page.locator(".decision")).to_have_count(0)
    sessions = lambda: console.coordinator.queries("session")  # noqa: E731
    assert not any("sys_decisions" in info.text for info in console.do(sessions))
    page.get_by_text("Decisions on plans").click()
    expect(page.locator(".decision .outcome")).to_have_text(["moved", "kept"])
    moved = page.locator(".decision.moved")
    expect(moved).to_contain_text(WHY)
    expect(moved).to_contain_text("530.8 B/s estimated, 520 B/s measured")
    expect(moved).to_contain_text("58.8 B/s estimated, 61 B/s measured")
    expect(moved).to_contain_text("The change took 4.8 kB and 0.5 s")
    bars = [page.locator(f".decision.moved .{when} .estimated") for when in ("before", "after")]
    wide = [float(bar.get_attribute("width")) for bar in bars]
    assert wide == pytest.approx([100.0, 100 * 58.8 / 530.8])
    expect(page.locator(".decision.kept .plan-bar")).to_have_count(1)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert problems == []
