"""Sign-in, People and Account in a real browser."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.principal import Role
from tests.federated_optimizer.coordinator.people.office import GOOD, ROOT
from tests.ui.conftest import Console
from tests.ui.sign_in.conftest import Ask

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="document.title=1">'


def look(page: Any, name: str) -> None:
    """Keep a picture for people who look at it, if a folder for them is named."""
    folder = os.environ.get("PANDO_TEST_PICTURES")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def sign_in(page: Any, console: Console, name: str, path: str = "/people") -> None:
    page.goto(console.address + path)
    page.wait_for_url(re.compile("/sign-in"))
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(GOOD)
    page.get_by_role("button", name="Sign in").click()


def test_who_signs_in_gets_the_page_that_was_asked_for_and_signs_out(
    staffed: Console, page: Any, expect: Any, problems: list[str]
) -> None:
    page.goto(f"{staffed.address}/people?x=1")
    page.get_by_label("Name").fill("administratory")
    page.get_by_label("Password").fill("not the password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("name or password is wrong")
    look(page, "sign-in")
    page.get_by_label("Password").fill(GOOD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{staffed.address}/people?x=1")
    expect(page.locator(".me a")).to_have_text("administratory")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{staffed.address}/sign-in")
    page.goto(staffed.address)
    expect(page).to_have_url(re.compile(r"/sign-in\?next=%2F$"))
    refused = [text for text in problems if "401" not in text]
    assert refused == []


def test_an_open_page_leads_to_the_sign_in_when_the_session_ends(
    staffed: Console, ask: Ask, page: Any
) -> None:
    sign_in(page, staffed, "analysty", "/queries")
    page.wait_for_url(f"{staffed.address}/queries")
    ask("administrator").patch("/api/accounts/analysty", json={"disabled": True})
    page.wait_for_url(re.compile(r"/sign-in\?next=%2Fqueries"))


@pytest.mark.parametrize(
    "next_page",
    ["//evil.example/", "https://evil.example", "javascript:alert(1)", "/\\evil.example"],
)
def test_the_sign_in_leads_to_no_other_site(
    staffed: Console, page: Any, next_page: str, requests: list[str]
) -> None:
    page.goto(f"{staffed.address}/sign-in?next={next_page}")
    page.get_by_label("Name").fill("analysty")
    page.get_by_label("Password").fill(GOOD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    assert page.url.startswith(staffed.address)
    assert all(url.startswith((staffed.address, "data:")) for url in requests)


def test_links_are_those_that_a_role_may_open(staffed: Console, page: Any, expect: Any) -> None:
    sign_in(page, staffed, "viewery", "/")
    page.wait_for_url(f"{staffed.address}/")
    expect(page.locator("nav a")).to_have_text([re.compile("^Map"), re.compile("^Alarms")])
    look(page, "viewer")


def test_an_administrator_manages_people(
    staffed: Console, page: Any, expect: Any, problems: list[str]
) -> None:
    sign_in(page, staffed, "administratory")
    rows = page.locator("#accounts tr")
    expect(rows).to_have_count(4)
    form = page.locator("#account-form")
    form.get_by_label("Name").fill("bob")
    form.get_by_label("Password").fill(GOOD)
    form.get_by_role("button", name="Add account").click()
    expect(rows).to_have_count(5)
    bob = rows.filter(has_text="bob")
    bob.get_by_role("combobox").select_option("operator")
    bob.get_by_role("button", name="Disable").click()
    expect(bob.locator(".badge")).to_have_text("disabled")
    bob.get_by_role("button", name="Set password").click()
    page.locator("#ask-password").fill("short")
    page.locator("#ask-yes").click()
    expect(page.get_by_role("alert").first).to_contain_text("10 to 256 characters")
    tokens = page.locator("#token-form")
    page.locator("#token-account").select_option("viewery")
    tokens.get_by_label("For", exact=True).fill(HOSTILE)
    tokens.get_by_label("Only these sources").fill("Temperature, <b>x")
    tokens.get_by_role("button", name="Create token").click()
    expect(page.locator("#token-secret")).to_have_text(re.compile("^pando_"))
    expect(page.locator("#tokens tr")).to_contain_text(HOSTILE)
    look(page, "people")
    page.locator("#tokens").get_by_role("button", name="Revoke").click()
    expect(page.locator("#no-tokens")).to_be_visible()
    bob.get_by_role("button", name="Remove").click()
    page.locator("#ask-yes").click()
    expect(rows).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() != "1"
    assert [text for text in problems if "400" not in text and "401" not in text] == []


def test_the_first_account_is_made_on_the_page(nobody_yet: Console, page: Any, expect: Any) -> None:
    page.goto(f"{nobody_yet.address}/people")
    expect(page.locator("#nobody")).to_be_visible()
    expect(page.locator("#account-role")).to_have_value("administrator")
    look(page, "first")
    page.get_by_label("Name").fill("ann")
    page.locator("#account-form").get_by_label("Password").fill(GOOD)
    page.get_by_role("button", name="Add account").click()
    page.wait_for_url(re.compile("/sign-in"))


def test_one_changes_ones_password_and_makes_tokens(
    staffed: Console, page: Any, expect: Any
) -> None:
    sign_in(page, staffed, "analysty", "/account")
    expect(page.locator("#who")).to_have_text("analysty is analyst.")
    page.get_by_label("Present password").fill(GOOD)
    page.get_by_label("New password").fill("a new long one")
    page.get_by_role("button", name="Change password").click()
    expect(page.locator("#password-said")).to_have_text("The password is changed.")
    page.get_by_label("For", exact=True).fill("report")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("#tokens tr")).to_contain_text("report")
    look(page, "account")


def test_names_are_shown_as_text(staffed: Console, page: Any, expect: Any) -> None:
    people = staffed.people
    assert people is not None
    issuer = f"https://x.example/{HOSTILE}"
    staffed.run(
        people.sign_in_external(issuer, HOSTILE, "eve@x.example", "h", first_role=Role.VIEWER)
    )
    staffed.run(people.create_token("viewery", HOSTILE, ROOT))
    sign_in(page, staffed, "administratory")
    expect(page.locator("#accounts tr").filter(has_text="eve@")).to_contain_text(issuer)
    assert page.locator("main img").count() == 0
    assert page.title() == "People · Pando"
