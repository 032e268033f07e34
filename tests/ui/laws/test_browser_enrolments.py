"""Enrolment on the page of gateways, in a real browser."""

from typing import Any

import pytest

pytestmark = pytest.mark.browser


def test_a_gateway_is_provisioned_and_its_token_is_shown_once(
    console: Any, page: Any, expect: Any
) -> None:
    page.goto(f"{console.address}/gateways")
    section = page.locator("#enrolments")
    expect(section).to_contain_text("No gateway was enrolled by token yet.")
    section.get_by_label("Name").fill("gw-4")
    section.get_by_role("button", name="Provision").click()
    dialog = page.locator("#enrolment-token")
    expect(dialog).to_contain_text(f"python -m gateway.join {console.address} pando1.token-of-gw-4")
    dialog.get_by_role("button", name="Done").click()
    expect(dialog).to_be_hidden()
    expect(section.locator("tbody tr")).to_contain_text("provisioned")
    assert "token-of-gw-4" not in page.content()


def test_a_refusal_is_shown_where_it_was_asked(
    console: Any, page: Any, expect: Any, client: Any
) -> None:
    client.post("/api/fleet", json={"name": "gw-4"})
    page.goto(f"{console.address}/gateways")
    section = page.locator("#enrolments")
    section.get_by_label("Name").fill("gw-4")
    section.get_by_role("button", name="Provision").click()
    expect(page.locator("#enrolment-problem")).to_contain_text("gw-4 has joined already")


def test_changes_are_made_after_a_question(
    console: Any, page: Any, expect: Any, client: Any
) -> None:
    fleet = console.coordinator.fleet
    client.post("/api/fleet", json={"name": "gw-4"})
    page.goto(f"{console.address}/gateways")
    row = page.locator("#enrolled tr")
    expect(row).to_contain_text("provisioned")
    console.do(lambda: fleet.set_state("gw-4", "joined"))
    expect(row).to_contain_text("joined")
    page.get_by_role("button", name="Rotate gw-4").click()
    expect(row).to_contain_text("new credentials")
    page.get_by_role("button", name="Rename gw-4").click()
    dialog = page.locator("#enrolment-rename")
    dialog.get_by_label("New name").fill("north wing")
    dialog.get_by_role("button", name="Rename").click()
    expect(dialog).to_be_visible()  # no name of a gateway has a space
    dialog.get_by_label("New name").fill("north-wing")
    dialog.get_by_role("button", name="Rename").click()
    expect(row).to_contain_text("north-wing")
    page.get_by_role("button", name="Revoke north-wing").click()
    question = page.locator("#enrolment-question")
    expect(question).to_contain_text("Revoke gateway north-wing?")
    question.get_by_role("button", name="Cancel").click()
    expect(row).to_contain_text("joined")
    page.get_by_role("button", name="Revoke north-wing").click()
    question.get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    page.get_by_role("button", name="Retire north-wing").click()
    question.get_by_role("button", name="Retire").click()
    expect(page.locator("#enrolled")).to_contain_text("No gateway was enrolled")


def test_who_is_no_administrator_sees_nothing_of_it(console: Any, page: Any, expect: Any) -> None:
    refusal = {"error": {"code": "refused", "message": "enrolment needs the role administrator"}}
    page.route("**/api/fleet", lambda route: route.fulfill(status=403, json=refusal))
    with page.expect_response("**/api/fleet"):
        page.goto(f"{console.address}/gateways")
    expect(page.locator("#sites tbody tr")).to_have_count(3)
    expect(page.locator("#enrolments")).to_be_hidden()


def test_operators_look_and_are_asked_nothing(
    console: Any, page: Any, expect: Any, client: Any
) -> None:
    client.post("/api/fleet", json={"name": "gw-4"})
    page.route(
        "**/api/me", lambda route: route.fulfill(json={"accounts": True, "role": "operator"})
    )
    page.goto(f"{console.address}/gateways")
    expect(page.locator("#enrolled")).to_contain_text("gw-4")
    expect(page.locator("#enrolment-form")).to_be_hidden()
    expect(page.locator("#enrolled button")).to_have_count(0)
