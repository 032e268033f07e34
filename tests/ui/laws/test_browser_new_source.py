"""New source in a browser: payloads as they come, a proposal, rows while typing, devices, save."""

import json
from typing import Any

import pytest

from tests.ui.api.resources.test_source_trial_routes import OFFERED, PRESS, sample

FIRST = sample(
    "tele/kitchen/SENSOR",
    {"Time": "2026-06-01T10:00:00Z", "ENERGY": {"Power": 42, "Total": 12.345, "Voltage": 230}},
)
SECOND = sample(
    "tele/cellar/SENSOR",
    {"Time": "2026-06-01T10:00:01Z", "ENERGY": {"Power": 0, "Total": 3.5, "Voltage": 231}},
)
LAMP = sample("tele/lamp/STATE", {"POWER": "ON", "Dimmer": 60})
EXPOSED = [
    {"type": "numeric", "property": "temperature", "unit": "°C", "access": 1},
    {"type": "numeric", "property": "battery", "unit": "%", "access": 1},
]
DEVICES = sample(
    "zigbee2mqtt/bridge/devices",
    [
        {
            "friendly_name": name,
            "definition": {
                "model": "WSDCGQ11LM",
                "vendor": "Aqara",
                "description": "Temperature sensor",
                "exposes": EXPOSED,
            },
        }
        for name in ("hall", "attic", "cellar <b>")
    ],
)


@pytest.fixture
def source_page(console: Any, page: Any, problems: list[str]) -> Any:  # noqa: ARG001
    """The page, opened; what goes wrong in it is noted from the beginning."""
    page.goto(f"{console.address}/sources/new")
    page.wait_for_selector(".cm-editor")
    return page


def report(console: Any, *samples: Any, **more: Any) -> None:
    console.do(lambda: console.coordinator.report(*samples, **more))


def statement(page: Any) -> str:
    """Return the text of the editor."""
    return "\n".join(page.locator(".cm-line").all_text_contents())


def write(page: Any, text: str) -> None:
    page.locator(".cm-content").fill(text)


def listen(page: Any, console: Any, wait_for: Any, topic: str = "tele/#") -> None:
    page.fill("#options", topic)
    before = len(console.coordinator.tried)
    page.click("#listen")
    wait_for(lambda: len(console.coordinator.tried) > before, "the gateway is asked")


def test_payloads_appear_as_they_come_and_become_a_saved_source(
    source_page: Any, console: Any, expect: Any, wait_for: Any, problems: list[str]
) -> None:
    page = source_page
    expect(page.locator("#endpoint option")).to_have_count(9)
    listen(page, console, wait_for)
    (_, command) = console.coordinator.tried[-1]
    assert '"tele/#"' in str(command.arguments)
    report(console, FIRST, notes=("subscribed to 1 topic filter",))
    expect(page.locator("#payloads li")).to_have_count(1)
    expect(page.locator("#state")).to_contain_text("subscribed to 1 topic filter")
    expect(page.locator(".cm-content")).to_contain_text("tele/{device}/SENSOR")
    report(console, SECOND, LAMP, number=1)
    expect(page.locator("#payloads li")).to_have_count(3)
    expect(page.locator("#payloads li").first).to_contain_text("tele/lamp/STATE")
    expect(page.locator("#payloads li.ignored")).to_have_count(1)
    expect(page.locator("#payloads .made").first).to_contain_text("cellar")
    report(console, number=2, done=True)
    expect(page.locator("#proposals button")).to_have_count(2)
    page.click('[data-tab="rows"]')
    expect(page.locator("#rows tbody tr")).to_have_count(2)
    expect(page.locator("#facts")).to_have_text("2 rows")
    page.click("#save")
    expect(page.locator("#saved")).to_contain_text("is there")
    assert "energy" in [d.name for d in console.coordinator.definitions()]
    page.click("#saved a")
    expect(page.locator(".cm-content")).to_contain_text("SELECT * FROM")
    assert problems == []


def test_rows_follow_what_is_typed_and_mistakes_are_said(
    source_page: Any, console: Any, expect: Any, wait_for: Any
) -> None:
    page = source_page
    listen(page, console, wait_for)
    report(console, FIRST, SECOND, done=True)
    expect(page.locator("#payloads .made")).to_have_count(2)
    asked = len(console.coordinator.tried)
    mine = (
        "CREATE SOURCE watts (device TEXT, p DOUBLE FROM 'ENERGY.Power' SCALE 0.001, KEY (device)) "
        "WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{device}/SENSOR')"
    )
    write(page, mine)
    expect(page.locator("#payloads .made").last).to_contain_text("0.042")
    write(page, mine.replace("'ENERGY.Power'", "'ENERGY.Sensor'"))
    expect(page.locator("#payloads .made.wrong").first).to_contain_text("no column's field")
    write(page, mine.replace("DOUBLE", "DUBLE"))
    expect(page.locator("#problem")).to_be_visible()
    write(page, mine)
    expect(page.locator("#problem")).to_be_hidden()
    assert len(console.coordinator.tried) == asked, "the gateway is not asked again"


def test_what_one_wrote_is_not_overwritten_by_a_proposal(
    source_page: Any, console: Any, expect: Any, wait_for: Any
) -> None:
    page = source_page
    write(page, "CREATE SOURCE mine (a TEXT)")
    listen(page, console, wait_for)
    report(console, FIRST, done=True)
    expect(page.locator("#proposals button")).to_have_count(1)
    assert statement(page) == "CREATE SOURCE mine (a TEXT)"
    page.click("#proposals button")
    expect(page.locator(".cm-content")).to_contain_text("tele/{device}/SENSOR")


def test_devices_are_adopted_with_one_click(
    source_page: Any, console: Any, expect: Any, wait_for: Any, problems: list[str]
) -> None:
    page = source_page
    page.fill("#seconds", "25")
    page.click("#discover")
    wait_for(lambda: console.coordinator.tried, "the gateway is asked")
    (_, command) = console.coordinator.tried[-1]
    assert json.loads(str(command.arguments["trial"]))["seconds"] == 25
    report(console, DEVICES, done=True)
    kind = page.locator("#devices li")
    expect(kind).to_have_count(1)
    expect(kind).to_contain_text("3 devices: hall, attic, cellar <b>")
    kind.get_by_role("button", name="Adopt").click()
    expect(kind.get_by_role("button", name="Adopted")).to_be_disabled()
    expect(page.locator("#saved")).to_contain_text("temperature_sensor is there")
    assert "temperature_sensor" in [d.name for d in console.coordinator.definitions()]
    kind.get_by_role("button", name="Edit").click()
    expect(page.locator(".cm-content")).to_contain_text("zigbee2mqtt/{device}")
    assert problems == []


def test_a_statement_is_tried_at_the_gateway_and_its_problem_is_shown(
    source_page: Any, console: Any, expect: Any, wait_for: Any
) -> None:
    page = source_page
    page.select_option("#endpoint", "gw-2 meter")
    expect(page.locator("#listen")).to_be_disabled()
    expect(page.locator("#state")).to_contain_text("reads the addresses in columns")
    write(
        page,
        "CREATE SOURCE m (power DOUBLE FROM 'input:12') "
        "WITH (connector = 'modbus', endpoint = 'meter', unit = '1')",
    )
    page.click("#try")
    wait_for(lambda: console.coordinator.tried, "the gateway is asked")
    (site, command) = console.coordinator.tried[-1]
    assert site == "gw-2"
    assert json.loads(str(command.arguments["trial"]))["orders"][0]["definition"]["name"] == "m"
    record = sample("", {"input:12": 1500.25}, is_record=True)
    report(console, record, problem="the meter does not answer", hint="is it on?", done=True)
    expect(page.locator("#problem")).to_contain_text("the meter does not answer")
    expect(page.locator("#payloads .made")).to_contain_text("1500.25")


def test_listening_is_stopped(source_page: Any, console: Any, expect: Any, wait_for: Any) -> None:
    page = source_page
    listen(page, console, wait_for)
    page.click("#stop")
    wait_for(lambda: "stop" in console.coordinator.tried[-1][1].arguments, "it is stopped")
    report(console, done=True)
    expect(page.locator("#stop")).to_be_hidden()


def test_without_a_gateway_the_page_says_so(console: Any, page: Any, expect: Any) -> None:
    console.coordinator.site_infos = ()
    page.goto(f"{console.address}/sources/new")
    expect(page.locator("#endpoint")).to_contain_text("no gateway that is online has an endpoint")
    expect(page.locator("#listen")).to_be_disabled()


def test_it_fits_a_phone(source_page: Any, console: Any, expect: Any, wait_for: Any) -> None:
    page = source_page
    page.set_viewport_size({"width": 390, "height": 844})
    listen(page, console, wait_for)
    report(console, FIRST, SECOND, done=True)
    expect(page.locator("#payloads .made")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click('[data-tab="rows"]')
    expect(page.locator("#rows tbody tr")).to_have_count(2)


def test_what_a_device_offers_is_chosen_and_saved(
    source_page: Any, console: Any, expect: Any, wait_for: Any, problems: list[str]
) -> None:
    page = source_page
    page.select_option("#endpoint", "gw-1 press")
    expect(page.locator("#listen")).to_have_text("Browse")
    page.fill("#options", "below = ns=2;s=Press")
    page.click("#listen")
    wait_for(lambda: console.coordinator.tried, "the gateway is asked")
    (_, command) = console.coordinator.tried[-1]
    assert '"ns=2;s=Press"' in str(command.arguments)
    report(console, PRESS, offers=(OFFERED,), done=True)
    expect(page.locator("#offers label")).to_have_count(2)
    expect(page.locator("#offers label").first).to_contain_text("Heat = 180.5 °C")
    expect(page.locator(".cm-content")).to_contain_text("FROM 'ns=2;s=Press.Heat' UNIT 'Cel'")
    expect(page.locator("#facts")).to_have_text("1 row")
    page.uncheck('#offers [data-address="ns=2;s=Press.Jobs"]')
    expect(page.locator(".cm-content")).not_to_contain_text("jobs")
    page.click('[data-tab="rows"]')
    expect(page.locator("#rows tbody td")).to_have_text(["180.5"])
    page.click("#save")
    expect(page.locator("#saved")).to_contain_text("Source press is there")
    assert problems == []


def test_what_can_be_neither_listened_to_nor_browsed_is_said(source_page: Any, expect: Any) -> None:
    source_page.select_option("#endpoint", "gw-1 meter")
    expect(source_page.locator("#listen")).to_be_disabled()
    expect(source_page.locator("#state")).to_contain_text(
        "Connector modbus reads the addresses in columns, and its devices cannot list them"
    )
