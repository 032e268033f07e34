"""Pages that nobody sees leave a browser's six connections to those that somebody does."""

from typing import Any

import pytest

pytestmark = pytest.mark.browser

SEATS = "SELECT mid, weightLevel FROM SeatSensor"
TABS = 8
SEE = """(hidden) => {
    Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
STREAMS = {
    "/": 2,
    "/queries?query=seats": 1,
    "/monitor?query=seats": 1,
    "/network": 1,
    "/gateways": 0,
    "/alarms": 1,
    "/data": 0,
    "/sources/new": 0,
    "/displays": 0,
    "/displays/lobby": 1,
}
"""Event streams of each page."""


@pytest.fixture
def federation(console: Any) -> Any:
    """A console with a query, a display and an alarm."""

    async def prepare() -> None:
        await console.coordinator.execute(SEATS, name="seats")
        await console.coordinator.execute("CREATE DISPLAY lobby WITH (floor = 0, x = 1, y = 1)")

    console.run(prepare())
    return console


def streams(console: Any) -> int:
    """How many answers are under way: only event streams last."""

    def count() -> int:
        connections = console._server.server_state.connections
        return sum(bool(c.cycle) and not c.cycle.response_complete for c in connections)

    return int(console.do(count))


@pytest.mark.parametrize("path", STREAMS)
def test_a_page_that_nobody_sees_asks_nothing_and_is_alive_again_when_it_is_seen(
    federation: Any, page: Any, requests: list[str], wait_for: Any, path: str
) -> None:
    page.clock.install()
    page.goto(f"{federation.address}{path}")

    def has_streams() -> bool:
        page.wait_for_timeout(50)
        return streams(federation) == STREAMS[path]

    wait_for(has_streams, "the page follows")
    page.evaluate(SEE, True)
    page.clock.run_for(4_000)
    wait_for(lambda: page.wait_for_timeout(50) or streams(federation) == 0, "the page rests")
    page.wait_for_load_state("networkidle")
    asked = len(requests)
    page.clock.run_for(60_000)
    assert requests[asked:] == []
    page.evaluate(SEE, False)
    page.clock.run_for(1_000)
    wait_for(has_streams, "the page follows again")
    wait_for(lambda: page.wait_for_timeout(50) or len(requests) > asked)


def test_more_tabs_than_a_browser_has_connections_all_answer(
    federation: Any, page: Any, expect: Any, wait_for: Any
) -> None:
    """All tabs of a browser share six; each of these follows one stream while it is seen."""
    pages = [page, *(page.context.new_page() for _ in range(TABS - 1))]
    for tab in pages:
        tab.goto(f"{federation.address}/queries?query=seats")
        expect(tab.locator("#title")).to_have_text("seats")
        expect(tab.locator("#facts")).to_contain_text("settled")
        tab.evaluate(SEE, True)
        wait_for(lambda: page.wait_for_timeout(50) or streams(federation) == 0, "it rests")
    federation.push("seats", (1, ("m1", 7.0)))
    pages[0].evaluate(SEE, False)
    expect(pages[0].locator("#rows tbody tr")).to_have_text(["m17"])
    assert pages[1].locator("#rows tbody tr").count() == 0


def test_a_tab_that_is_opened_out_of_sight_waits_until_it_is_seen(
    federation: Any, page: Any, expect: Any, wait_for: Any
) -> None:
    page.add_init_script(
        'Object.defineProperty(document, "hidden", { get: () => true, configurable: true })'
    )
    page.goto(f"{federation.address}/queries?query=seats")
    expect(page.locator("#title")).to_have_text("seats")
    page.wait_for_load_state("networkidle")
    wait_for(lambda: streams(federation) == 0, "what the page asks once is answered")
    federation.push("seats", (1, ("m1", 7.0)))
    page.evaluate(SEE, False)
    expect(page.locator("#rows tbody tr")).to_have_text(["m17"])


def test_queries_of_the_monitor_end_with_being_seen_and_begin_again(
    federation: Any, page: Any, wait_for: Any
) -> None:
    def sessions() -> list[str]:
        page.wait_for_timeout(50)
        found = federation.do(lambda: federation.coordinator.queries("session"))
        return [query.id for query in found]

    page.goto(f"{federation.address}/monitor?query=seats")
    first = wait_for(lambda: len(found := sessions()) == 2 and found)
    page.evaluate(SEE, True)
    wait_for(lambda: not sessions(), "its queries are stopped")
    page.evaluate(SEE, False)
    again = wait_for(lambda: len(found := sessions()) == 2 and found)
    assert not set(first) & set(again)


def test_a_page_that_has_lost_the_console_no_longer_says_settled(
    federation: Any, page: Any, expect: Any
) -> None:
    federation.push("seats", (1, ("m1", 7.0)))
    page.goto(f"{federation.address}/queries?query=seats")
    expect(page.locator("#facts")).to_contain_text("settled")
    expect(page.locator("#rows tbody tr")).to_have_text(["m17"])
    federation.stop()
    expect(page.locator("#facts")).to_have_text(
        "Connection lost: this page shows old data. Reconnecting…"
    )
    for outdated in ("#rows", "#queries"):
        expect(page.locator(outdated)).to_contain_class("outdated")
    expect(page.locator("#rows tbody tr")).to_have_text(["m17"])
    federation.start_again()
    expect(page.locator("#facts")).to_contain_text("settled")
    for recent in ("#rows", "#queries"):
        expect(page.locator(recent)).not_to_contain_class("outdated")


def test_a_page_whose_console_is_silent_no_longer_says_settled(
    federation: Any, page: Any, expect: Any
) -> None:
    federation.push("seats", (1, ("m1", 7.0)))
    page.goto(f"{federation.address}/queries?query=seats")
    expect(page.locator("#facts")).to_contain_text("settled")
    # As of a machine that is cut off: connections stand, and nothing is said.
    page.route("**/api/queries*", lambda _route: None)
    page.route("**/api/sites", lambda _route: None)
    expect(page.locator("#facts")).to_contain_text(
        "Connection lost: this page shows old data", timeout=60_000
    )
    expect(page.locator("#status")).to_have_text("The console does not answer.", timeout=60_000)
    page.unroute_all()
    expect(page.locator("#facts")).to_contain_text("settled", timeout=60_000)
    expect(page.locator("#rows tbody tr")).to_have_text(["m17"])


@pytest.mark.parametrize(
    ("path", "outdated"),
    [("/gateways", "#sites"), ("/alarms", "#lost"), ("/displays/lobby", "#lost")],
)
def test_other_pages_say_so_too(
    federation: Any, page: Any, expect: Any, path: str, outdated: str
) -> None:
    page.goto(f"{federation.address}{path}")
    place = page.locator(outdated)
    if path == "/gateways":
        expect(place.locator("tbody tr")).to_have_count(3)
        federation.stop()
        expect(place).to_contain_class("outdated")
        federation.start_again()
        expect(place).not_to_contain_class("outdated")
        return
    expect(place).to_be_hidden()
    federation.stop()
    expect(place).to_contain_text("Connection lost: this page shows old data")
    federation.start_again()
    expect(place).to_be_hidden()


@pytest.mark.usefixtures("federation")
@pytest.mark.parametrize(
    ("address", "events"),
    [("/alarms", "**/api/alarms/events*"), ("/displays/lobby", "**/api/displays/events*")],
)
def test_a_page_of_a_console_that_has_fallen_silent_says_so(
    console: Any, page: Any, expect: Any, address: str, events: str
) -> None:
    """The connection stands, as to a console that is stopped, and nothing comes over it."""
    page.clock.install()
    with page.expect_response(events):
        page.goto(f"{console.address}{address}")
    lost = page.locator("#lost")
    expect(lost).to_be_hidden()
    page.route(events, lambda route: route.abort())
    page.clock.run_for(31_000)  # of the page's time: no beat can have come
    expect(lost).to_be_visible()
    page.unroute(events)
    page.clock.run_for(3_000)
    expect(lost).to_be_hidden()
