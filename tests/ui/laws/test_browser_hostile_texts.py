"""No text that a page shows is markup: not a name, a value, an error, a unit or a note of anything.

Every text of every answer ends with markup that would run a script if it were one.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.contract.principal import LOCAL, Role
from federated_optimizer.coordinator.people.passwords import Passwords, PasswordWork
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.people.people_store import PeopleStore
from host.clocks import wall_clock
from tests.federated_optimizer.coordinator.people.office import GOOD, QUICK, ROOT, Office
from tests.ui.api.resources.test_network_routes import NETWORK
from tests.ui.api.resources.test_sink_routes import INFO
from tests.ui.conftest import Console, FakeCoordinator
from tests.ui.hostile_texts import MARKUP, HostileTexts
from ui.console_settings import ConsoleSettings

pytestmark = pytest.mark.browser

PAGES = (
    "/",
    "/queries?query=seats",
    "/queries?query=broken",
    "/monitor?query=seats",
    "/network?query=seats",
    "/gateways",
    "/alarms",
    "/data",
    "/sources/new",
    "/displays",
    "/displays/lobby",
    "/people",
    "/account",
)
WITHOUT_TEXTS = ("/network?query=seats", "/displays")
STATEMENTS = """
CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE)
  WITH (source = 'csv', path = 'receiver.csv');
CREATE DISPLAY lobby WITH (floor = 0, x = 12, y = 12, title = 'Free machines', rows = 3);
CREATE ALARM hot AS SELECT rid, celsius FROM Temperature WHERE celsius > 40 SEVERITY 'critical';
SELECT mid, weightLevel FROM SeatSensor WHERE weightLevel < 5.0 OUTPUT TO DISPLAY lobby
"""
OPEN_EVERYTHING = """() => {
    for (const each of document.querySelectorAll("details")) each.open = true;
    for (const box of document.querySelectorAll("input[type=checkbox]:not(:checked)")) box.click();
    for (const each of document.querySelectorAll("button[aria-expanded=false]")) each.click();
    const place = { bubbles: true, clientX: 400, clientY: 400 };
    for (const shape of document.querySelectorAll(".leaflet-interactive, [tabindex], tr, td")) {
        for (const kind of ["mouseover", "mouseenter", "mousemove", "focusin"])
            shape.dispatchEvent(new MouseEvent(kind, place));
    }
}"""
"""Opens what is closed, shows all layers of the map, and points at everything."""


def prepare(coordinator: FakeCoordinator, console: Console) -> None:
    """Let there be one of everything that pages show."""

    async def made() -> None:
        await coordinator.execute("SELECT mid, weightLevel FROM SeatSensor", name="seats")
        await coordinator.execute("SELECT rid FROM Temperature", name="broken")
        await coordinator.execute(STATEMENTS)
        await coordinator.fleet.provision("gw-4", LOCAL)
        coordinator.set_status("broken", QueryStatus.FAILED, "no such column 'x'")
        coordinator.set_warnings("seats", "gw-1 answers late")
        coordinator.sinks.listed = (INFO,)
        coordinator.nodes = NETWORK
        coordinator.raise_alarm("hot", ("L012", 41.0))
        people = console.people
        assert people is not None
        await people.add_account("ann", Role.ADMINISTRATOR, GOOD, ROOT)
        await people.create_token("ann", "nightly report", ROOT)

    console.run(made())
    console.push("seats", (1, ("m1", 7.0)))
    (shown,) = [q.id for q in coordinator.queries() if q.display]
    console.push(shown, (1, ("m1", 2.0)))


@pytest.fixture
def hostile(
    coordinator: FakeCoordinator, settings: ConsoleSettings, tmp_path: Path
) -> Iterator[Console]:
    """A console of whose answers every text is hostile."""
    office = Office(f"sqlite:///{tmp_path / 'catalog.db'}")
    work = PasswordWork(Passwords(QUICK))
    people = People(PeopleStore(office.url), wall_clock, office, work=work)
    coordinator.answers = lambda text: (
        [("r1", "L012", 0, 12.0, 9.0)] if text.endswith('"receiver"') else []
    )
    made = Console(coordinator, settings, people)
    made.app.add_middleware(HostileTexts)
    made.start()
    prepare(coordinator, made)
    yield made
    made.stop()


@pytest.fixture
def broken(page: Any) -> list[str]:
    """Errors of scripts, with the page in which they come."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(f"{page.url}: {error}"))
    return found


def sign_in(console: Console, page: Any) -> None:
    who = {"name": "ann", "password": GOOD}
    assert page.request.post(f"{console.address}/api/sign-in", data=who).ok


def check_no_markup(page: Any, path: str) -> None:
    """Look at everything of a page: no text has become an element, none has run."""
    for _ in range(3):
        page.evaluate(OPEN_EVERYTHING)
        page.wait_for_timeout(50)
        assert page.locator(".forged").count() == 0, path
    assert page.evaluate("window.forged") is None, path


def test_no_text_of_an_answer_is_markup(
    hostile: Console, page: Any, expect: Any, wait_for: Any, broken: list[str]
) -> None:
    sign_in(hostile, page)
    answered: list[str] = []
    page.on("response", lambda answer: answered.append(answer.url))
    for path in PAGES:
        answered.clear()
        page.goto(f"{hostile.address}{path}")
        wait_for(lambda: page.wait_for_timeout(50) or any("/api/" in url for url in answered))
        if path not in WITHOUT_TEXTS:
            expect(page.locator("body")).to_contain_text("<b class=forged>")
        check_no_markup(page, path)
    assert broken == []


def test_tooltips_of_the_map_are_text(hostile: Console, page: Any, expect: Any) -> None:
    sign_in(hostile, page)
    page.goto(hostile.address)
    page.get_by_label("Radio links").check()
    page.locator("path.mote").first.dispatch_event("mouseover", {"clientX": 99, "clientY": 99})
    expect(page.locator(".leaflet-tooltip")).to_contain_text("r1<img class=forged")
    check_no_markup(page, "/")


def test_no_text_that_is_written_into_a_page_is_markup(
    hostile: Console, page: Any, expect: Any, broken: list[str]
) -> None:
    """Those of the templates: titles of displays, addresses that are not there, ways back."""
    title = MARKUP.replace("'", "''")
    display = f"CREATE DISPLAY hall WITH (floor = 0, x = 1, y = 1, title = '{title}')"
    hostile.run(hostile.coordinator.execute(display))
    page.goto(f"{hostile.address}/queries?query={quote(MARKUP)}")  # not signed in: asks to
    expect(page.locator("h1")).to_contain_text("Sign in")
    check_no_markup(page, "/sign-in")
    sign_in(hostile, page)
    for path in ("/displays", "/displays/hall", f"/nowhere/{quote(MARKUP)}"):
        page.goto(f"{hostile.address}{path}")
        expect(page.locator("body")).to_contain_text("<img class=forged")
        check_no_markup(page, path)
    assert broken == []


def test_completions_and_problems_in_the_editor_are_text(
    hostile: Console, page: Any, expect: Any, broken: list[str]
) -> None:
    sign_in(hostile, page)
    page.goto(f"{hostile.address}/queries")
    page.locator(".cm-content").click()
    page.keyboard.insert_text("SELECT nothing FROM SeatSensor")
    expect(page.locator(".cm-lintRange-error")).to_have_count(1)
    page.locator(".cm-lintRange-error").hover()
    expect(page.locator(".cm-diagnostic").first).to_contain_text("<b class=forged>")
    check_no_markup(page, "the editor")
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT mid FROM Sea")
    expect(page.locator(".cm-tooltip-autocomplete li").first).to_contain_text("<b class=forged>")
    check_no_markup(page, "the editor")
    assert broken == []


@pytest.fixture
def imported(coordinator: FakeCoordinator, site_file: Path, tmp_path: Path) -> Iterator[Console]:
    """A console with somebody's map, whose names end with markup."""
    site = json.loads(site_file.read_text(encoding="utf-8"))
    named = [feature["properties"] for feature in site["features"]] + site["pando"]["levels"]
    for properties in named:
        properties |= {key: properties[key] + MARKUP for key in ("name",) if properties.get(key)}
    file = tmp_path / "site.geojson"
    file.write_text(json.dumps(site), encoding="utf-8")
    made = Console(coordinator, ConsoleSettings("", str(tmp_path), site_file=str(file)))
    made.app.add_middleware(HostileTexts, texts=False)
    made.start()
    yield made
    made.stop()


def test_names_on_a_map_of_others_are_text(
    imported: Console, page: Any, expect: Any, broken: list[str]
) -> None:
    """Those that the plan is drawn with, too."""
    page.goto(imported.address)
    page.wait_for_selector(".desk[aria-label^='lab']")
    expect(page.locator("body")).to_contain_text("<b class=forged>")
    check_no_markup(page, "/")
    page.locator(".shape").first.click()
    check_no_markup(page, "/")
    assert broken == []
