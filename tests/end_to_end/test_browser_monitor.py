"""The monitor in a real browser against a real federation: what it shows is what the sites do."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.federation import PATIENCE, Federation, federation
from tests.end_to_end.test_browser import PATIENCE_MS
from tests.headless_browser import headless_browser

pytestmark = [pytest.mark.end_to_end, pytest.mark.browser, pytest.mark.timeout(600)]

FREE = (
    "SELECT ss.mid, sr.rid FROM SeatSensor ss JOIN RoomSensor sr ON sr.rid = ss.rid "
    "WHERE ss.weightLevel < 5.0"
)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with federation(tmp_path_factory.mktemp("monitor") / "data", "--no-spark") as running:
        yield running


@pytest.fixture
def problems() -> list[str]:
    return []


@pytest.fixture
def page(problems: list[str]) -> Iterator[Page]:
    with headless_browser() as browser:
        opened = browser.new_page(viewport={"width": 1400, "height": 950})
        opened.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
        yield opened


def sessions(up: Federation) -> list[str]:
    shown = up.http.get("/api/queries").json()
    return [query["id"] for query in shown if query["origin"] == "session"]


def test_plan_properties_settings_and_graphs(
    up: Federation, page: Page, problems: list[str]
) -> None:
    query = up.start_query(FREE)
    page.goto(f"{up.address}/monitor?query={query}")
    sites = page.locator(".site-name")
    expect(sites).to_have_text(["base", "gw-1", "gw-2", "gw-3"])
    # The numbers are those of the sites, and go on.
    page.locator(".operator", has_text="weightlevel < 5.0").first.click()
    rows_in = page.locator("#properties tr", has_text=re.compile("^rows in[0-9]")).locator("td")
    expect(rows_in.first).to_have_text(re.compile(r"[1-9]\d*"))
    before = int(rows_in.first.inner_text())
    up.until(lambda: int(rows_in.first.inner_text()) > before)

    # The scheduler of a gateway is changed in place, and the gateway reports that it is so.
    page.get_by_role("button", name="site gw-1 at gw-1").click()
    reported = page.locator("#properties tr", has_text=re.compile("^scheduler"))
    expect(reported).to_contain_text("FIFO")
    page.select_option("#setting-scheduler", "greedy")
    expect(page.locator("#settings .saved")).to_contain_text("has confirmed it")
    expect(reported).to_contain_text("greedy")
    assert up.http.get("/api/sites/gw-1/settings").json()["scheduler"] == "greedy"
    page.fill("#setting-queue_rows", "0")
    page.press("#setting-queue_rows", "Tab")
    expect(page.locator("#settings .problem")).to_contain_text("queue_rows ranges from 1 to")
    expect(page.locator("#setting-queue_rows")).to_have_value("100000")

    # A graph is a query: it comes with it, and goes with it.
    up.until(lambda: len(sessions(up)) == 2)
    page.get_by_role("button", name="Add graph").click()
    offer = "Events per second, mean of 30 seconds"
    page.locator("#add-graph select").select_option(label=offer)
    page.get_by_role("button", name="Add", exact=True).click()
    lines = page.locator(".graph .chart-legend li")
    expect(lines).to_have_count(4)
    expect(lines.filter(has_text="gw-1")).to_contain_text(re.compile(r"[1-9].*events/s"))
    assert len(sessions(up)) == 3
    page.get_by_role("button", name="Remove graph").click()
    up.until(lambda: len(sessions(up)) == 2)

    # The answer stayed what it was; the page leaves nothing behind.
    assert up.query(query)["status"] == "running"
    assert problems == [problem for problem in problems if "422" in problem or "400" in problem]
    page.goto(f"{up.address}/data")
    up.until(lambda: not sessions(up), PATIENCE)
    up.stop_query(query)


def test_sharing_is_seen_and_switched_off(up: Federation, page: Page) -> None:
    # The map keeps the same window of temperatures; alone, the query does not read the map's rows.
    text = (
        "SELECT rid, MAX(celsius) AS celsius FROM Temperature [RANGE 1 MINUTE] GROUP BY rid "
        "WITH (shared = 'no')"
    )
    query = up.start_query(text)
    page.goto(f"{up.address}/monitor?query={query}")
    stubs = page.locator(".picture .stub-line")
    expect(stubs).to_have_count(3)
    store = page.get_by_role("button", name=re.compile(r"^store s\d+ at gw-1$"))
    store.click()
    expect(page.locator("#properties")).to_contain_text(
        "One set of rows that several synopses share; each of them is"
    )
    page.locator("#setting-share_synopses").uncheck()
    expect(store).to_have_count(0)
    expect(stubs).to_have_count(2)
    page.locator("#setting-share_synopses").check()
    expect(store).to_have_count(1)
    up.stop_query(query)
