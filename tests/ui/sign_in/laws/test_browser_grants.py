"""Grants on the pages People and Data, in a real browser."""

import json
from typing import Any

import pytest

from tests.ui.conftest import Console

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='1'\">"
GRANTS = [
    {"kind": "source", "relation": "seatsensor", "to": "user", "name": "ann", "by": "ada"},
    {"kind": "view", "relation": HOSTILE, "to": "everybody", "name": "", "by": HOSTILE},
]


def answer(page: Any) -> list[str]:
    """Answer for the coordinator; return the statements that the page sends."""
    sent: list[str] = []
    grants = [{**grant, "since": "2026-11-26T10:00:00.000000Z"} for grant in GRANTS]
    known = {"grants": grants, "makers": {"seatsensor": HOSTILE}}
    page.route("**/api/grants", lambda route: route.fulfill(json=known))

    def took(route: Any) -> None:
        sent.append(json.loads(route.request.post_data)["text"])
        if "nothing" in sent[-1]:
            error = {"code": "unknown_relation", "message": "there is no table 'nothing'"}
            route.fulfill(status=400, json={"error": {**error, "hint": HOSTILE}})
        else:
            route.fulfill(json=[])

    page.route("**/api/statements", took)
    return sent


def test_an_administrator_grants_and_revokes(nobody_yet: Console, page: Any, expect: Any) -> None:
    sent = answer(page)
    page.goto(f"{nobody_yet.address}/people")
    rows = page.locator("#grants tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text(HOSTILE)
    form = page.locator("#grant-form")
    form.get_by_label("Kind of relation").select_option("table")
    form.get_by_label("Relation", exact=True).fill('Odd"Name')
    form.get_by_label("Grantee").fill("o'hara")
    form.get_by_role("button", name="Grant").click()
    form.get_by_label("Grant to").select_option("everybody")
    expect(form.get_by_label("Grantee")).to_be_disabled()
    form.get_by_label("Relation", exact=True).fill("nothing")
    form.get_by_role("button", name="Grant").click()
    expect(page.locator("#people-problem")).to_contain_text("there is no table 'nothing'")
    rows.first.get_by_role("button", name="Revoke").click()
    expect(page.locator("#people-problem")).to_be_hidden()
    assert sent == [
        "GRANT SELECT ON TABLE \"odd\"\"name\" TO USER 'o''hara'",
        'GRANT SELECT ON TABLE "nothing" TO EVERYBODY',
        "REVOKE SELECT ON SOURCE \"seatsensor\" FROM USER 'ann'",
    ]
    assert page.title() != "1"


def test_the_page_of_data_says_who_may_read(console: Console, page: Any, expect: Any) -> None:
    answer(page)
    page.goto(f"{console.address}/data")
    source = page.locator("details", has_text="SeatSensor").first
    source.locator("summary").click()
    told = f"Made by {HOSTILE}. Read by user ann, operators and administrators."
    expect(source.locator("p.quiet")).to_have_text(told)
    assert page.title() != "1"
