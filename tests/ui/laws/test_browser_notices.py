"""Alarms and displays in a real browser: the badge, the page, the map, a screen of its own."""

import re
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SCRIPT = """
CREATE DISPLAY lobby WITH (floor = 0, x = 12, y = 12, title = 'Free machines', rows = 3);
CREATE ALARM hot AS SELECT rid, celsius FROM Temperature WHERE celsius > 40 SEVERITY 'critical';
SELECT mid, weightLevel FROM SeatSensor WHERE weightLevel < 5.0 OUTPUT TO DISPLAY lobby;
"""


@pytest.fixture
def query(client: Any, console: Any) -> str:
    """The query that is shown on the display."""
    answer = client.post("/api/statements", json={"text": SCRIPT})
    assert answer.is_success, answer.text
    found: str = answer.json()[-1]["query"]["id"]
    console.push(found, *((1, (f"lab101-0{n}", float(n))) for n in range(1, 5)))
    return found


def test_a_display_on_its_screen_follows_its_answer(
    query: str, console: Any, page: Any, expect: Any
) -> None:
    page.goto(f"{console.address}/displays/lobby")
    expect(page.locator("h1")).to_have_text("Free machines")
    rows = page.locator(f"figure[data-query='{query}'] tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator(".more")).to_have_text("and 1 more")
    console.push(query, (-1, ("lab101-01", 1.0)), (-1, ("lab101-02", 2.0)))
    expect(rows).to_have_count(2)
    assert rows.first.inner_text().startswith("lab101-03")
    expect(page.locator(".more")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_map_shows_displays_and_alarms_at_their_places(
    query: str, console: Any, page: Any, expect: Any
) -> None:
    page.goto(console.address)
    page.wait_for_selector(".desk[aria-label^='lab']")
    display = page.locator(".map-display[data-display='lobby']")
    expect(display).to_be_visible()
    expect(display.locator("tbody tr")).to_have_count(3)
    console.push(query, (-1, ("lab101-01", 1.0)), (-1, ("lab101-02", 2.0)))
    expect(display.locator("tbody tr")).to_have_count(2)
    assert display.locator("a").get_attribute("href") == "/displays/lobby"
    # It stands beside the building, so that it covers no room, with a line to its place.
    box = display.bounding_box()
    walls = [shape.bounding_box() for shape in page.locator(".shape").all()]
    assert all(
        b["y"] + b["height"] <= box["y"] or box["y"] + box["height"] <= b["y"] for b in walls
    )
    expect(page.locator(".display-line")).to_have_count(1)
    # Where there is no room beside it, its title stands at the place, and opens the rest.
    for _ in range(8):
        page.locator(".leaflet-control-zoom-in").click()
        page.wait_for_timeout(60)  # time passes: a step of the zoom is drawn
    expect(page.locator(".map-display.folded")).to_have_count(1)
    expect(display.locator("tbody")).to_be_hidden()
    page.reload()
    console.do(lambda: console.coordinator.raise_alarm("hot", ("O024", 41.5)))
    alarm = page.locator("#map_plan .alarm-place.critical")
    expect(alarm).to_be_visible()
    expect(alarm).to_have_attribute("aria-label", "critical: hot, rid O024, celsius 41.5")
    alarm.click()
    expect(page.locator("#details h2")).to_be_visible()
    page.locator("input[data-layer='alarms']").uncheck()
    expect(alarm).to_have_count(0)
    page.locator("input[data-layer='alarms']").check()
    console.do(lambda: console.coordinator.raise_alarm("hot", in_doubt=True))
    unknown = "critical: hot, rid O024, celsius 41.5 (unknown: gw-2 is offline)"
    expect(alarm).to_have_attribute("aria-label", unknown)
    console.coordinator.away = ()
    expect(alarm).to_have_attribute("aria-label", re.compile("its query has not settled since"))
    console.do(lambda: console.coordinator.decide_alarm("hot"))
    expect(alarm).to_have_count(0)


def test_the_legend_of_the_map_explains_the_signs_of_alarms(
    query: str, console: Any, page: Any, expect: Any
) -> None:
    del query
    page.goto(console.address)
    console.do(lambda: console.coordinator.raise_alarm("hot", ("O024", 41.5)))
    legend = page.locator("#legend li")
    raised = legend.filter(has_text="critical").locator(".key")
    unknown = legend.filter(has_text="unknown: its gateway is offline").locator(".key")
    expect(legend.filter(has_text="acknowledged")).to_have_count(1)
    # A key looks as the sign itself.
    sign = page.locator("#map_plan .alarm-place")
    look = "(sign) => [sign.textContent, getComputedStyle(sign).backgroundColor]"
    expect(sign).to_be_visible()
    assert sign.evaluate(look) == raised.evaluate(look)
    console.do(lambda: console.coordinator.raise_alarm("hot", in_doubt=True))
    expect(sign).to_have_text("?")
    assert sign.evaluate(look) == unknown.evaluate(look)


@pytest.mark.usefixtures("query")
def test_signs_of_one_room_stand_side_by_side_and_leave_its_name_readable(
    console: Any, page: Any, expect: Any
) -> None:
    page.goto(console.address)
    console.do(lambda: console.coordinator.raise_alarm("hot", ("O024", 41.5), ("O024", 1 / 3)))
    signs = page.locator("#map_plan .alarm-place")
    expect(signs).to_have_count(2)
    labels = {sign.get_attribute("aria-label").rpartition(" ")[2] for sign in signs.all()}
    assert labels == {"41.5", "0.333333"}
    one, other = (sign.bounding_box() for sign in signs.all())
    assert abs(one["x"] - other["x"]) >= 12
    name = page.locator(".room-label b", has_text="O024").bounding_box()
    assert name["height"] > 0
    for sign in (one, other):
        assert sign["y"] >= name["y"] + name["height"]


@pytest.mark.usefixtures("query")
def test_alarms_are_counted_acknowledged_and_remembered(
    console: Any, page: Any, expect: Any
) -> None:
    console.do(lambda: console.coordinator.raise_alarm("hot", ("O024", 41.5), ("L102", 42.0)))
    page.goto(f"{console.address}/alarms")
    badge = page.locator(".alarm-count")
    expect(badge).to_have_text("2")
    expect(badge).to_have_class("alarm-count critical")
    raised = page.locator("#raised tr")
    expect(raised).to_have_count(2)
    raised.filter(has_text="O024").get_by_role("button", name="Acknowledge").click()
    expect(raised.filter(has_text="O024")).to_contain_text("acknowledged")
    console.do(lambda: console.coordinator.raise_alarm("hot", ("L102", 42.0)))
    expect(raised).to_have_count(1)
    expect(page.locator("#cleared tr")).to_have_count(1)
    expect(page.locator("#cleared tr")).to_contain_text("O024")
    # Nobody knows about the row of a gateway that is away; then it is back without it.
    console.do(lambda: console.coordinator.raise_alarm("hot", in_doubt=True))
    expect(raised.filter(has_text="L102")).to_contain_text("unknown: gw-2 is offline")
    console.coordinator.away = ()
    reason = "unknown: its query has not settled since"
    expect(raised.filter(has_text="L102")).to_contain_text(reason)
    console.do(lambda: console.coordinator.decide_alarm("hot"))
    expect(raised.filter(has_text="L102")).to_contain_text("cleared")
    expect(badge).to_have_text("1")
    raised.get_by_role("button", name="Acknowledge").click()
    expect(raised).to_have_count(0)
    expect(badge).to_be_hidden()
    expect(page.locator("#definitions tr")).to_contain_text("celsius > 40")


@pytest.mark.usefixtures("query")
def test_a_map_that_nobody_sees_rests_and_is_right_again_when_it_is_seen(
    console: Any, page: Any, expect: Any, wait_for: Any
) -> None:
    """A browser opens six connections to a console; hidden tabs are to leave them to others."""
    page.goto(console.address)
    display = page.locator(".map-display[data-display='lobby']")
    expect(display).to_be_visible()
    seats = console.coordinator.query("map-seats").id
    readers = console.coordinator.running[seats].readers
    wait_for(lambda: page.wait_for_timeout(50) or readers)
    see = """(hidden) => {
        Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(see, True)
    page.evaluate(see, False)
    page.evaluate(see, True)
    wait_for(lambda: page.wait_for_timeout(50) or not readers)
    console.do(lambda: console.coordinator.catalog.drop("lobby"))
    page.evaluate(see, False)
    wait_for(lambda: page.wait_for_timeout(50) or readers)
    expect(display).to_have_count(0)
    assert len(readers) == 1
