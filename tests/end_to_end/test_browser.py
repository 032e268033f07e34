"""The story in a real browser against the real federation."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.answers import FreeMachines
from tests.end_to_end.federation import PATIENCE, Federation, federation, wait
from tests.end_to_end.stillness import hold_still
from tests.headless_browser import headless_browser

pytestmark = [pytest.mark.end_to_end, pytest.mark.browser, pytest.mark.timeout(600)]

PATIENCE_MS = 1000 * PATIENCE
NO_RESERVATIONS = "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:none\nEND:VCALENDAR\n"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("browser")
    calendar = folder / "empty.ics"  # a reservation that begins would change who is free
    calendar.write_text(NO_RESERVATIONS)
    options = ("--no-spark", "--calendar", str(calendar))
    with federation(folder / "data", *options) as running:
        yield running


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with headless_browser() as browser:
        opened = browser.new_page(viewport={"width": 1280, "height": 800})
        opened.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield opened


def test_the_route_is_drawn_and_moves_when_somebody_sits_down(up: Federation, page: Page) -> None:
    hold_still(up)
    room = next(r for r in up.sites()["gw-2"]["rooms"] if r.startswith("L1"))
    free = FreeMachines(up, room, "LaTeX")
    page.goto(up.address)
    page.wait_for_selector(".desk")
    page.select_option("#route-software", "LaTeX")
    page.select_option("#route-from", room)
    answer = page.locator("#route-answer")
    expect(answer).to_contain_text(re.compile(r"\d+ m to \w"))
    expect(page.locator("path.route").first).to_be_visible()
    target = answer.locator(".found .link-button")

    def shown() -> str | None:
        """The machine the page leads to, if it is the nearest of those that are free."""
        return next((mid for mid in target.all_inner_texts() if free.is_nearest(mid)), None)

    first = up.until(shown)
    sat = up.pando("simulate", "sit", first)
    assert sat.returncode == 0, sat.stderr
    up.until(lambda: shown() not in (None, first))
    assert up.pando("simulate", "leave", first).returncode == 0
    expect(target).to_have_text(first)
    up.until(lambda: shown() == first)
    free.close()


def run_query(up: Federation, page: Page, text: str) -> None:
    """Type a query into the console and run it."""
    page.goto(f"{up.address}/queries")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.type(text)
    page.click("#run")


def test_a_query_is_typed_run_and_its_rows_are_live(up: Federation, page: Page) -> None:
    run_query(up, page, "SELECT mid, weightLevel FROM SeatSensor WHERE weightLevel > 5.0")
    rows = page.locator("#rows tbody tr")
    expect(rows.first).to_be_visible()
    mid = rows.first.locator("td").first.inner_text()
    assert up.pando("simulate", "leave", mid).returncode == 0
    gone = page.locator("#rows tbody td", has_text=re.compile(f"^{mid}$"))
    expect(gone).to_have_count(0)


def test_a_wrong_query_shows_place_and_hint(up: Federation, page: Page) -> None:
    run_query(up, page, "SELECT weigth FROM SeatSensor")
    problem = page.locator("#problem")
    expect(problem).to_contain_text("line 1, column 8")
    expect(problem).to_contain_text("weigth")


def test_every_page_stays_on_our_own_address(up: Federation, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in ("/", "/queries", "/gateways", "/data"):
        page.goto(up.address + path)
        wait(lambda: page.evaluate("() => document.readyState") == "complete")
    assert asked
    foreign: list[Any] = [
        url for url in asked if not url.startswith((up.address, "data:", "blob:"))
    ]
    assert not foreign
