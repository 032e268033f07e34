"""The query console in a real browser."""

import re
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult

pytestmark = pytest.mark.browser

SEATS = "SELECT mid, weightLevel FROM SeatSensor"


@pytest.fixture
def query_page(console: Any, page: Any) -> Any:
    """The query console with an empty editor."""
    page.goto(f"{console.address}/queries")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    return page


def write(page: Any, text: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def user_query(console: Any) -> Any:
    queries = console.do(lambda: console.coordinator.queries("user"))
    return queries[-1] if queries else None


@pytest.fixture
def query(query_page: Any, console: Any, wait_for: Any) -> Any:
    """The query of seats, which was written into the editor and runs."""
    write(query_page, SEATS)
    query_page.keyboard.press("Control+Enter")
    return wait_for(lambda: user_query(console))


def rows(page: Any) -> Any:
    return page.locator("#rows tbody tr:not(.out)")


def test_rows_appear_change_and_disappear_live(
    query_page: Any, console: Any, expect: Any, wait_for: Any
) -> None:
    write(query_page, SEATS)
    query_page.get_by_role("button", name="Run").click()
    query = wait_for(lambda: user_query(console))
    expect(query_page.locator("#title")).to_have_text(query.id)
    expect(query_page.locator("#none")).to_contain_text("No rows now")
    console.push(query.id, (1, ("m2", 0.5)), (1, ("m10", 70.0)))
    expect(rows(query_page)).to_have_count(2)
    # Sorted as people count.
    assert rows(query_page).all_inner_texts() == ["m2\t0.5", "m10\t70"]
    expect(query_page.locator("#rows tr.in")).to_have_count(2)
    console.push(query.id, (-1, ("m2", 0.5)), (1, ("m2", 66.0)))
    expect(rows(query_page).first).to_have_text("m266")
    # A row that is gone fades for a moment; here the moment lasts until it has been seen.
    query_page.evaluate(
        "() => { window.hurry = window.setTimeout; window.later = [];"
        " window.setTimeout = (action) => window.later.push(action); }"
    )
    console.push(query.id, (-1, ("m10", 70.0)))
    expect(query_page.locator("#rows tr.out")).to_have_count(1)
    expect(rows(query_page)).to_have_count(1)
    query_page.evaluate(
        "() => { window.setTimeout = window.hurry; window.later.forEach((action) => action()); }"
    )
    expect(query_page.locator("#rows tr.out")).to_have_count(0)
    query_page.get_by_role("tab", name="Changes").click()
    signs = query_page.locator("#changes li").all_inner_texts()
    assert sum("+" in line for line in signs) == 3
    assert sum("- m" in line for line in signs) == 2
    query_page.get_by_role("tab", name="Plan").click()
    expect(query_page.locator("#plan")).to_contain_text("Fragment of")


def test_a_subscription_with_upserts_is_shown_row_by_row(
    query_page: Any, console: Any, expect: Any, wait_for: Any, problems: Any
) -> None:
    write(query_page, f"SUBSCRIBE TO ({SEATS}) WITH (SNAPSHOT = false) ENVELOPE UPSERT (KEY (mid))")
    query_page.locator("#run").click()
    query = wait_for(lambda: user_query(console))
    expect(query_page.locator("#title")).to_have_text(query.id)
    console.push(query.id, (1, ("m1", 0.5)), (1, ("m2", 1.5)))
    expect(rows(query_page)).to_have_text(["m10.5", "m21.5"])
    console.push(query.id, (-1, ("m1", 0.5)), (1, ("m1", 2.5)))
    expect(rows(query_page)).to_have_text(["m12.5", "m21.5"])
    assert problems == []


def test_columns_sort(query_page: Any, console: Any, expect: Any, query: Any) -> None:
    console.push(query.id, (1, ("a", 9.0)), (1, ("b", 10.0)), (1, ("c", 1.0)))
    expect(rows(query_page)).to_have_count(3)
    query_page.locator("th button", has_text="weightlevel").click()
    assert [t.split("\t")[0] for t in rows(query_page).all_inner_texts()] == ["c", "a", "b"]
    query_page.locator("th button", has_text="weightlevel").click()
    assert [t.split("\t")[0] for t in rows(query_page).all_inner_texts()] == ["b", "a", "c"]
    console.push(query.id, (1, ("d", 9.5)))
    expect(rows(query_page)).to_have_count(4)
    assert [t.split("\t")[0] for t in rows(query_page).all_inner_texts()] == ["b", "d", "a", "c"]


def test_duplicates_count_and_a_fresh_snapshot_replaces_everything(
    query_page: Any, console: Any, expect: Any, query: Any
) -> None:
    console.push(query.id, (2, ("m1", 1.0)))
    expect(rows(query_page)).to_have_count(1)
    console.push(query.id, (-1, ("m1", 1.0)))
    query_page.wait_for_timeout(300)  # time passes: the row would have gone
    expect(rows(query_page)).to_have_count(1)
    # More changes than may wait for a reader: it gets a snapshot instead.
    console.do(
        lambda: [
            console.coordinator.push(query.id, (1, (f"n{n}", 0.0)), (-1, (f"n{n}", 0.0)))
            for n in range(1500)
        ]
    )
    console.push(query.id, (-1, ("m1", 1.0)), (1, ("m7", 7.0)))
    expect(rows(query_page)).to_have_count(1)
    expect(rows(query_page)).to_contain_text("m7")


def test_a_wrong_query_is_underlined_while_typing_and_explained_when_run(
    query_page: Any, expect: Any
) -> None:
    write(query_page, "SELECT mid,\n  wieghtLevel FROM SeatSensor")
    expect(query_page.locator(".cm-lintRange-error")).to_have_text("wieghtLevel")
    query_page.get_by_role("button", name="Run").click()
    problem = query_page.locator("#problem")
    expect(problem).to_contain_text("line 2, column 3: wieghtLevel")
    expect(problem).to_contain_text("weightlevel")
    write(query_page, SEATS)
    query_page.get_by_role("button", name="Run").click()
    expect(problem).to_be_hidden()


def test_relations_and_columns_are_completed(query_page: Any, expect: Any) -> None:
    query_page.locator(".cm-content").click()
    query_page.keyboard.type("SELECT * FROM seats")
    expect(query_page.locator(".cm-tooltip-autocomplete")).to_contain_text("seatsensor")


def test_the_grammar_and_signatures_are_completed_in_their_context(
    query_page: Any, expect: Any
) -> None:
    offered = query_page.locator(".cm-tooltip-autocomplete")
    query_page.locator(".cm-content").click()
    query_page.keyboard.type("SELECT medi")
    expect(offered).to_contain_text("MEDIAN(x)")
    query_page.keyboard.press("Escape")
    write(query_page, "SELECT s. FROM SeatSensor AS s")
    for _ in range(len(" FROM SeatSensor AS s")):
        query_page.keyboard.press("ArrowLeft")
    query_page.keyboard.type("weig")
    expect(offered).to_contain_text("weightlevel")
    query_page.keyboard.press("Escape")
    write(query_page, "SELECT mid FROM SeatSensor ")
    query_page.keyboard.type("emi")
    expect(offered).to_contain_text("EMIT ON WINDOW CLOSE")


def test_examples_fill_the_editor_and_are_explained(query_page: Any, expect: Any) -> None:
    query_page.select_option("#examples", label="Reachable pairs of motes")
    expect(query_page.locator(".cm-content")).to_contain_text("WITH RECURSIVE reachable")
    query_page.get_by_role("button", name="Explain").click()
    expect(query_page.locator("#plan")).to_contain_text("Fragment f0")


def test_a_plan_is_drawn_before_the_query_runs(query_page: Any, expect: Any, query: Any) -> None:
    write(query_page, f"{SEATS} [RANGE 1 MINUTE] WHERE weightLevel > 5.0")
    query_page.get_by_role("button", name="Explain").click()
    boxes = query_page.locator("#plan-picture .fragment")
    expect(boxes).to_have_count(2)
    expect(query_page.locator("#plan-picture .result-text")).to_have_text("result")
    sender = query_page.locator("#plan-picture .fragment.gateway")
    expect(sender.locator(".where")).to_have_text("f1 · site-1, site-2")
    expect(sender.locator(".line")).to_have_text("Filter")
    for rate in query_page.locator("#plan-picture .rate").all_text_contents():
        assert re.fullmatch(r"≈ [\d.,]+ rows/s · [\d.,]+ B/s", rate)
    # What sends is below what reads it.
    above = query_page.locator("#plan-picture .fragment.base")
    assert above.bounding_box()["y"] < sender.bounding_box()["y"]
    expect(query_page.locator("#plan")).to_contain_text("range of bytes/s")
    # Sentences go on in the next line; the columns of tables stay below each other.
    query_page.set_viewport_size({"width": 700, "height": 800})
    texts, sentences = query_page.locator("#plan > span"), query_page.locator("#plan .sentence")
    assert max(map(len, sentences.all_text_contents())) > 100
    assert sentences.evaluate_all("all => all.every(s => s.scrollWidth <= s.clientWidth)")
    heights = texts.evaluate_all("all => all.map(s => s.offsetHeight)")
    assert max(heights) >= 2 * min(heights)
    columns = query_page.locator("#plan .columns")
    assert set(columns.evaluate_all("all => all.map(s => s.offsetHeight)")) == {min(heights)}
    # Of a query without a picture none stays from before.
    query_page.locator("#queries button", has_text=query.id).click()
    query_page.get_by_role("tab", name="Plan").click()
    expect(query_page.locator("#plan")).to_contain_text("Fragment of")
    expect(query_page.locator("#plan-picture")).to_be_hidden()


@pytest.mark.usefixtures("query")
def test_the_plan_of_a_running_query_says_what_feeds_it(
    query_page: Any, console: Any, expect: Any
) -> None:
    text = f"EXPLAIN (TYPE FEDERATED, FORMAT JSON) {SEATS}"
    (told,) = console.run(console.coordinator.execute(text))
    rates = {"rows_per_second": 1234.0, "messages_per_second": 3.0, "bytes_per_second": 0.5}
    measured = {**rates, "milliseconds": 2.0, "seconds": 9.0, "beyond": {"rows_per_second": 900.0}}
    told.data["fragments"][1]["measured"] = {**measured, "run": "q7"}
    told.data["fed"] = {"f1": {"run": "q7", "fragment": "f3"}}
    answer = StatementResult(ResultKind.TEXT, text="Fragment of it", data=told.data)
    console.coordinator.explain = lambda _query: answer
    query_page.get_by_role("tab", name="Plan").click()
    fed = query_page.locator("#plan-picture .fragment.fed.beyond")
    expect(fed.locator(".feed")).to_have_text("fed by run q7")
    assert "1,200 rows/s · 0.5 B/s" in query_page.locator("#plan-picture .rate").all_text_contents()


def test_queries_are_listed_chosen_and_stopped(
    query_page: Any, console: Any, expect: Any, query: Any
) -> None:
    write(query_page, "SELECT rid, status FROM RoomSensor")
    query_page.keyboard.press("Control+Enter")
    expect(query_page.locator("#queries button")).to_have_count(2)
    query_page.locator("#queries button", has_text=query.id).click()
    expect(query_page.locator("#title")).to_have_text(query.id)
    expect(query_page.locator("#shown-text")).to_have_text(SEATS)
    monitor = query_page.locator("#watch")
    assert monitor.get_attribute("href") == f"/monitor?query={query.id}"
    query_page.get_by_role("button", name="Edit a copy").click()
    expect(query_page.locator(".cm-content")).to_have_text(SEATS)
    expect(query_page.locator("#shown-text")).to_be_hidden()
    query_page.get_by_role("button", name="Stop").click()
    expect(query_page.locator("#queries button")).to_have_count(1)
    assert query.id not in console.coordinator.running


def test_a_late_answer_does_not_take_the_place_of_what_was_chosen_since(
    query_page: Any, expect: Any, query: Any
) -> None:
    expect(query_page.locator("#title")).to_have_text(query.id)
    held: list[Any] = []
    query_page.route("**/api/statements", lambda route: held.append(route))  # noqa: PLW0108 - it marks what it is given
    with query_page.expect_request("**/api/statements"):
        write(query_page, "SELECT rid, status FROM RoomSensor")
        query_page.keyboard.press("Control+Enter")
    query_page.locator("#queries button", has_text=query.id).click()
    expect(query_page.locator("#shown-text")).to_have_text(SEATS)
    with query_page.expect_response("**/api/statements"):
        held[0].continue_()
    expect(query_page.locator("#queries button")).to_have_count(2)
    expect(query_page.locator("#run")).to_be_enabled()  # all that follows an answer is done
    expect(query_page.locator("#title")).to_have_text(query.id)


def test_reloading_shows_the_same_query_and_an_unknown_one_is_told(
    query_page: Any, console: Any, expect: Any, query: Any
) -> None:
    console.push(query.id, (1, ("m1", 1.0)))
    expect(rows(query_page)).to_have_count(1)
    query_page.locator("#queries button").focus()
    assert query_page.url.endswith(f"?query={query.id}")
    query_page.reload()
    expect(query_page.locator("#title")).to_have_text(query.id)
    expect(rows(query_page)).to_have_count(1)
    query_page.get_by_role("button", name="Stop").click()
    expect(query_page.locator("#none")).to_have_text("The query was stopped.")
    assert query_page.url.endswith("/queries")
    query_page.goto(f"{console.address}/queries?query=q99")
    expect(query_page.locator("#problem")).to_contain_text("there is no query 'q99'")


def test_a_page_recovers_after_the_console_was_started_again(
    query_page: Any, console: Any, expect: Any, query: Any
) -> None:
    console.push(query.id, (1, ("m1", 1.0)), (1, ("m2", 2.0)))
    expect(rows(query_page)).to_have_text(["m11", "m22"])
    console.stop()
    expect(query_page.locator("#status")).to_have_text("The console does not answer.")
    query_page.locator("#run").click()
    expect(query_page.locator("#problem")).to_contain_text("The console does not answer.")
    expect(query_page.locator("#run")).to_be_enabled()
    # What the query gave meanwhile, nobody has told the page.
    console.coordinator.push(query.id, (-1, ("m1", 1.0)), (1, ("m3", 3.0)))
    console.start_again()
    expect(rows(query_page)).to_have_text(["m22", "m33"])
    expect(query_page.locator("#status")).to_contain_text("gateways online")
    expect(query_page.locator("#problem")).to_be_hidden()
    expect(query_page.locator("#title")).to_have_text(query.id)
    console.push(query.id, (1, ("m4", 4.0)))
    expect(rows(query_page)).to_have_text(["m22", "m33", "m44"])


def test_a_console_that_refuses_while_it_starts_is_asked_again(
    query_page: Any, console: Any, expect: Any, wait_for: Any, query: Any
) -> None:
    console.push(query.id, (1, ("m1", 1.0)))
    expect(rows(query_page)).to_have_text(["m11"])
    refused: list[Any] = []

    def refuse(route: Any) -> None:
        refused.append(route)
        route.fulfill(status=503, body="starting")

    query_page.route("**/changes*", refuse)
    console.stop()
    console.start_again()
    wait_for(lambda: query_page.wait_for_timeout(50) or refused)
    console.push(query.id, (1, ("m2", 2.0)))
    query_page.unroute("**/changes*")
    expect(rows(query_page)).to_have_text(["m11", "m22"])
    expect(query_page.locator("#title")).to_have_text(query.id)


def test_what_a_query_warns_of_is_shown_as_long_as_it_is_so(
    query_page: Any, console: Any, expect: Any, query: Any
) -> None:
    warnings = query_page.locator("#warnings")
    expect(query_page.locator("#title")).to_have_text(query.id)
    expect(warnings).to_be_hidden()
    slow = "windows wait for gw-2, whose readings are 40 s behind those of others"
    console.do(lambda: console.coordinator.set_warnings(query.id, slow))
    expect(warnings).to_have_text(slow)
    query_page.reload()
    expect(warnings).to_have_text(slow)
    expect(query_page.locator("#problem")).to_be_hidden()
    console.do(lambda: console.coordinator.set_warnings(query.id))
    expect(warnings).to_be_hidden()
    console.do(lambda: console.coordinator.set_warnings(query.id, slow))
    expect(warnings).to_be_visible()
    query_page.get_by_role("button", name="Stop").click()
    expect(warnings).to_be_hidden()


def test_of_a_script_that_fails_what_is_done_already_is_told(
    query_page: Any, console: Any, expect: Any, wait_for: Any
) -> None:
    write(query_page, f"{SEATS};\nSHOW SOURCES;\nSELECT wieght FROM SeatSensor")
    query_page.keyboard.press("Control+Enter")
    query = wait_for(lambda: user_query(console))
    problem = query_page.locator("#problem")
    expect(problem).to_contain_text("line 3, column 8: wieght")
    expect(problem.locator(".done li")).to_have_text(
        [f"line 1: query {query.id} runs; DROP QUERY {query.id} stops it"]
    )
    expect(query_page.locator("#queries button")).to_have_count(1)


def test_two_tabs_keep_their_own_text_and_hear_of_each_other(
    query_page: Any, console: Any, expect: Any, wait_for: Any
) -> None:
    other = query_page.context.new_page()
    other.goto(f"{console.address}/queries")
    write(query_page, SEATS)
    query_page.keyboard.press("Control+Enter")
    query = wait_for(lambda: user_query(console))
    expect(query_page.locator("#title")).to_have_text(query.id)
    other.locator("#queries button", has_text=query.id).click()
    console.push(query.id, (1, ("m1", 1.0)))
    expect(rows(query_page)).to_have_text(["m11"])
    expect(rows(other)).to_have_text(["m11"])
    with other.expect_response("**/api/validate"):
        write(other, "SELECT rid, status FROM RoomSensor")
    query_page.reload()
    expect(query_page.locator(".cm-content")).to_have_text(SEATS)
    query_page.get_by_role("button", name="Stop").click()
    expect(other.locator("#none")).to_have_text("The query was stopped.")
    expect(other.locator(".cm-content")).to_have_text("SELECT rid, status FROM RoomSensor")


def test_nothing_is_run_by_mistake(query_page: Any, console: Any, expect: Any) -> None:
    problem = query_page.locator("#problem")
    write(query_page, "-- nothing yet; really\n")
    query_page.get_by_role("button", name="Run").click()
    expect(problem).to_contain_text("There is no statement.")
    # Explaining the first of two statements must not carry out the second.
    write(query_page, f"{SEATS} WHERE mid = ';'; DROP VIEW FreeMachines")
    query_page.get_by_role("button", name="Explain").click()
    expect(problem).to_contain_text("Explain takes one statement; here are 2.")
    assert console.coordinator.catalog.find("freemachines") is not None
    write(query_page, "SELECT mid,\n  wieght FROM SeatSensor")
    query_page.get_by_role("button", name="Explain").click()
    expect(problem).to_contain_text("line 2, column 3: wieght")


def test_of_a_very_large_answer_the_first_rows_are_shown(
    query_page: Any, console: Any, expect: Any, query: Any
) -> None:
    console.push(query.id, *((1, (f"m{n}", 1.0)) for n in range(9_999, -1, -1)))
    expect(rows(query_page)).to_have_count(1000)
    expect(rows(query_page).first).to_contain_text("m0")
    expect(query_page.locator("#facts")).to_contain_text("10,000 rows, the first 1000 shown")
    console.push(query.id, (-1, ("m0", 1.0)), (-1, ("m5", 1.0)), (1, ("m5", 2.0)))
    expect(rows(query_page).nth(4)).to_have_text("m52")
    expect(rows(query_page).last).to_contain_text("m1000")
    query_page.locator("th button", has_text="mid").click()
    expect(rows(query_page).first).to_contain_text("m9999")
    expect(rows(query_page)).to_have_count(1000)


def test_what_a_query_waits_for_is_said(
    query_page: Any, console: Any, expect: Any, starting: Any
) -> None:
    console.coordinator.status, console.coordinator.waiting_for = starting, ("static",)
    write(query_page, "SELECT mid FROM Machines")
    query_page.keyboard.press("Control+Enter")
    expect(query_page.locator("#waiting")).to_contain_text("Spark is warming up")


def test_values_are_text_never_markup(
    query_page: Any, console: Any, expect: Any, problems: Any, query: Any
) -> None:
    console.push(query.id, (1, ("<img src=x onerror=alert(1)>", None)))
    expect(rows(query_page)).to_contain_text("<img src=x onerror=alert(1)>NULL")
    assert problems == []
