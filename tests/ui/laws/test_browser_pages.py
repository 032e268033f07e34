"""The pages of gateways and data in a real browser."""

from typing import Any

import httpx
import pytest

from tests.ui.api.resources.test_sink_routes import INFO

pytestmark = pytest.mark.browser


def test_the_gateways_page_follows(console: Any, page: Any, expect: Any) -> None:
    page.goto(f"{console.address}/gateways")
    expect(page.locator("#sites tbody tr")).to_have_count(3)
    expect(page.locator("#sites tr", has_text="gw-2")).to_contain_text("online")
    expect(page.locator("#sites tr", has_text="gw-2")).to_contain_text("1 error (odd)")
    console.do(lambda: console.coordinator.set_site("gw-2", "stale"))
    expect(page.locator("#sites tr", has_text="gw-2")).to_contain_text("offline")
    expect(page.locator("#sites tr", has_text="gw-2")).to_contain_text("3 packs, 120 B")
    expect(page.locator("#sites tr", has_text="gw-2")).to_contain_text("(last known ")
    expect(page.locator("#sites tr", has_text="gw-1")).not_to_contain_text("last known")
    expect(page.locator("#status")).to_contain_text("2 of 3 gateways online")


def test_a_source_that_no_gateway_serves_is_named(
    console: Any, page: Any, expect: Any, client: httpx.Client
) -> None:
    page.route("**/api/sources", lambda route: route.fulfill(json=[]))
    page.goto(f"{console.address}/gateways")
    expect(page.locator("#sites tbody tr")).to_have_count(3)
    expect(page.locator("#missing-section")).to_be_hidden()
    page.unroute("**/api/sources")
    text = (
        "CREATE SOURCE ghost (device TEXT, x DOUBLE, KEY (device)) "
        "WITH (connector = 'mqtt', endpoint = 'nowhere', topic = 'a/{device}')"
    )
    assert client.post("/api/statements", json={"text": text}).is_success
    row = page.locator("#missing tr", has_text="ghost")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("no gateway has endpoint nowhere of connector mqtt")


def test_a_gateway_that_has_left_is_removed_after_a_question(
    console: Any, page: Any, expect: Any
) -> None:
    page.goto(f"{console.address}/gateways")
    expect(page.locator("#sites tbody tr")).to_have_count(3)
    expect(page.get_by_role("button", name="Remove")).to_have_count(0)  # of one that is there
    console.do(lambda: console.coordinator.set_site("gw-2", "stale"))
    remove = page.get_by_role("button", name="Remove gw-2")
    dialog = page.locator("#remove")
    remove.click()
    expect(dialog).to_contain_text("Remove gateway gw-2?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#sites tbody tr")).to_have_count(3)
    # It comes back while the question is open: the console refuses.
    remove.click()
    console.do(lambda: console.coordinator.set_site("gw-2", "live"))
    dialog.get_by_role("button", name="Remove").click()
    expect(page.locator("#problem")).to_contain_text("gateway gw-2 is online")
    console.do(lambda: console.coordinator.set_site("gw-2", "stale"))
    remove.click()
    expect(page.locator("#problem")).to_be_hidden()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.locator("#sites tbody tr")).to_have_count(2)
    expect(page.locator("#sites")).not_to_contain_text("gw-2")


def test_a_gateway_is_started_again_after_a_question(console: Any, page: Any, expect: Any) -> None:
    page.goto(f"{console.address}/gateways")
    page.get_by_role("button", name="Restart gw-2").click()
    dialog = page.locator("#remove")
    expect(dialog).to_contain_text("Restart gw-2?")
    expect(dialog).to_contain_text("continues where it was")
    dialog.get_by_role("button", name="Restart").click()
    expect(dialog).to_be_hidden()
    commands = console.coordinator.commands
    expect(page.locator("#problem")).to_be_hidden()
    page.wait_for_function("!document.querySelector('#remove').open")
    assert commands[-1] == ("gw-2", "restart", {})


def test_settings_of_a_site_are_changed_on_the_page_of_gateways(
    console: Any, page: Any, expect: Any, client: httpx.Client
) -> None:
    page.goto(f"{console.address}/gateways")
    page.get_by_role("button", name="Settings of gw-2").click()
    dialog = page.locator("#site-settings")
    expect(dialog).to_contain_text("Settings of gw-2")
    dialog.get_by_label("Max waiting rows").fill("5000")
    dialog.get_by_label("Max waiting rows").press("Tab")
    expect(dialog.get_by_role("status")).to_contain_text("Max waiting rows")
    settings = client.get("/api/sites/gw-2/settings").json()
    assert (settings["queue_rows"], settings["scheduler"]) == (5_000, "fifo")
    dialog.get_by_label("Max waiting rows").fill("0")
    dialog.get_by_label("Max waiting rows").press("Tab")
    expect(dialog.get_by_role("alert")).to_contain_text("queue_rows ranges from 1")
    dialog.get_by_role("button", name="Done").click()
    expect(dialog).to_be_hidden()


def test_the_data_page_shows_columns_and_texts(console: Any, page: Any, expect: Any) -> None:
    page.goto(f"{console.address}/data")
    entry = page.locator("details", has_text="freemachines").first
    expect(entry).to_contain_text("mid TEXT, rid TEXT, host TEXT")
    entry.locator("summary").click()
    expect(entry.locator("pre")).to_be_visible()


def test_dead_letters_are_shown_sent_again_and_discarded(
    console: Any, page: Any, expect: Any, wait_for: Any
) -> None:
    console.coordinator.sinks.listed = (INFO,)
    page.goto(f"{console.address}/data")
    toggle = page.get_by_role("button", name="Dead letters of free")
    letters = page.get_by_role("table", name="Dead letters of free")
    expect(toggle).to_have_text("2")
    expect(letters).to_have_count(0)
    toggle.click()
    rows = letters.locator("tbody tr")
    expect(rows).to_have_count(2)
    for word in ('"desk":"d1"', "HTTP 500", "10"):
        expect(rows.first).to_contain_text(word)
    expect(rows.first.get_by_title("2026-01-01T00:00:00Z")).to_have_count(1)
    expect(rows.last).to_contain_text("has no row any more")
    page.get_by_role("button", name="Send again").click()
    expect(toggle).to_have_attribute("aria-expanded", "true")
    wait_for(lambda: console.coordinator.sinks.retried == ["free"])
    page.get_by_role("button", name="Discard…").click()
    dialog = page.locator("#sink-ask")
    expect(dialog).to_contain_text("Discard 2 dead letters of free?")
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Discard…").click()
    dialog.get_by_role("button", name="Discard").click()
    wait_for(lambda: console.coordinator.sinks.discarded == ["free"])
    toggle.click()
    expect(letters).to_have_count(0)


def test_a_sink_is_dropped_after_a_question(
    console: Any, page: Any, expect: Any, client: httpx.Client, wait_for: Any
) -> None:
    text = (
        "CREATE SINK free FROM SELECT mid, rid FROM SeatSensor "
        "WITH (connector = 'mqtt', topic = 'building/seats/{mid}')"
    )
    assert client.post("/api/statements", json={"text": text}).is_success
    console.coordinator.sinks.listed = (INFO,)
    page.goto(f"{console.address}/data")
    page.get_by_role("button", name="Drop free").click()
    dialog = page.locator("#sink-ask")
    expect(dialog).to_contain_text("Drop sink free?")
    dialog.get_by_role("button", name="Drop").click()
    expect(dialog).to_be_hidden()
    wait_for(lambda: client.get("/api/definitions", params={"kind": "sink"}).json() == [])
