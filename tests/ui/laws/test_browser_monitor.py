"""The monitor in a real browser: plan, properties and graphs follow what sites report."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.explaining.seen_texts import NOT_SHOWN
from tests.ui.reported_plan import TEXT, ReportedPlan, seconds

pytestmark = pytest.mark.browser


class Watched:
    """A running query, what its sites report, and the page that shows it."""

    def __init__(self, console: Any, page: Any, sites: tuple[str, ...]) -> None:
        self.console, self.page = console, page
        body = {"text": TEXT}
        answer = httpx.post(
            f"{console.address}/api/statements", json=body, trust_env=False, timeout=60
        )
        self.query = str(answer.json()[0]["query"]["id"])
        self.plan = ReportedPlan(self.query, sites)
        console.coordinator.answers = self.plan.answer

    def open(self) -> Any:
        self.page.goto(f"{self.console.address}/monitor?query={self.query}")
        self.page.wait_for_selector(".operator")
        return self.page

    def sessions(self) -> list[Any]:
        found: list[Any] = self.console.do(lambda: self.console.coordinator.queries("session"))
        return found

    def read(self) -> int:
        """Return how many session queries have a reader."""
        running = self.console.coordinator.running
        return sum(bool(running[info.id].readers) for info in self.sessions())

    def pass_seconds(self, count: int) -> None:
        """Report some seconds more to every query of the page."""

        def push(before: int, now: int) -> None:
            for info in self.console.coordinator.queries("session"):
                if info.text.startswith("SELECT ts, site, query"):
                    gone = [(-1, row) for row in self.plan.numbers(before)]
                    come = [(1, row) for row in self.plan.numbers(now)]
                    self.console.coordinator.push(info.id, *gone, *come)
                elif "sys_stream" in info.text:
                    rows = [(1, row) for row in self.plan.series(info.text, now)]
                    self.console.coordinator.push(info.id, *rows)

        for before, now in seconds(self.plan.second, self.plan.second + count):
            self.console.do(lambda before=before, now=now: push(before, now))
        self.plan.second += count


@pytest.fixture
def watch(console: Any, page: Any) -> Callable[..., Watched]:
    """Starts a query and reports about it."""

    def start(sites: tuple[str, ...] = ("base", "gw-1", "gw-2")) -> Watched:
        return Watched(console, page, sites)

    return start


def operator(page: Any, line: str, site: str = "gw-1") -> Any:
    return page.get_by_role("button", name=f"{line} at {site}", exact=True)


def test_the_plan_is_drawn_from_queries_and_its_numbers_move(
    watch: Any, expect: Any, problems: Any
) -> None:
    watched = watch()
    page = watched.open()
    expect(page.locator(".site-name")).to_have_text(["base", "gw-1", "gw-2"])
    expect(page.locator(".operator")).to_have_count(2 + 2 * 4)
    expect(page.locator(".picture .edge.crossing")).to_have_count(2)
    join = operator(page, "InnerJoin [rid = rid]")
    expect(join).to_contain_text("0.25")
    synopsis = page.get_by_role("button", name="synopsis f1/3 at gw-1")
    expect(synopsis).to_contain_text("301")
    watched.pass_seconds(4)
    expect(synopsis).to_contain_text("305")
    expect(page.locator(".rate", has_text="15/s").first).to_be_visible()
    expect(page.locator(".queue.filled .waiting-rows").first).to_have_text("5")
    # Stores are drawn once a site, with a dotted line to each stub.
    expect(page.locator(".store")).to_have_count(2)
    expect(page.locator(".picture .stub-line")).to_have_count(2)
    page.get_by_text("This plan is the query").click()
    expect(page.locator("#plan-text pre").first).to_contain_text("FROM sys_operators")
    assert {q.text.split()[q.text.split().index("FROM") + 1] for q in watched.sessions()} == {
        "sys_operators",
        "sys_stream",
    }
    assert problems == []


def test_properties_of_the_chosen_entity_and_what_belongs_to_it(watch: Any, expect: Any) -> None:
    watched = watch()
    page = watched.open()
    operator(page, "InnerJoin [rid = rid]").click()
    panel = page.locator("#properties")
    expect(panel).to_contain_text("Operator f1/3 at gw-1")
    expect(panel.locator("tr", has_text="rows in per second")).to_contain_text("21 rows/s")
    watched.pass_seconds(1)
    expect(panel.locator("tr", has_text="rows in per second")).to_contain_text("22 rows/s")
    panel.get_by_role("button", name="Synopsis f1/3").click()
    expect(panel).to_contain_text("The state of an operator: the rows that it keeps")
    expect(panel.locator("tr", has_text="shared")).to_contain_text("yes")
    page.keyboard.press("Escape")
    expect(panel).to_contain_text("Choose an element of the plan: an operator, a queue, a")
    operator(page, "Filter weightlevel < 5.0", "gw-2").focus()
    page.keyboard.press("Enter")
    expect(panel).to_contain_text("Operator f1/1 at gw-2")
    site = page.get_by_role("button", name="site gw-1 at gw-1")
    site.click()
    watched.plan.scheduler = 1
    watched.pass_seconds(1)
    expect(panel.locator("tr", has_text="scheduler")).to_contain_text("greedy")


def test_settings_are_changed_in_place_and_refused_in_words(watch: Any, expect: Any) -> None:
    watched = watch()
    page = watched.open()
    page.get_by_role("button", name="site gw-1 at gw-1").click()
    saved = page.locator("#settings .saved")
    page.select_option("#setting-scheduler", "greedy")
    expect(saved).to_contain_text("Scheduler changed.")
    coordinator = watched.console.coordinator
    assert coordinator.site_settings("gw-1").scheduler == "greedy"
    watched.plan.scheduler = 1
    watched.pass_seconds(1)
    expect(saved).to_contain_text("gw-1 has confirmed it")
    page.fill("#setting-slice_ms", "2.5")
    page.press("#setting-slice_ms", "Enter")
    expect(saved).to_contain_text("Slice changed.")
    assert coordinator.site_settings("gw-1").slice_ms == 2.5
    page.fill("#setting-slice_ms", "")
    page.press("#setting-slice_ms", "Tab")
    page.locator("#setting-share_synopses").uncheck()
    expect(saved).to_contain_text("Share synopses changed.")
    assert coordinator.site_settings("gw-1").slice_ms is None
    assert coordinator.site_settings("gw-1").share_synopses is False
    page.fill("#setting-report_seconds", "9999")
    page.press("#setting-report_seconds", "Tab")
    expect(saved.locator(".problem")).to_contain_text("report_seconds ranges from")
    expect(page.locator("#setting-report_seconds")).to_have_value("1")
    # An operator's panel has the settings of its site, too.
    operator(page, "InnerJoin [rid = rid]", "gw-2").click()
    expect(page.locator("#settings h3")).to_have_text("Settings of gw-2")
    expect(page.locator("#setting-scheduler")).to_have_value("fifo")


def test_a_graph_is_added_drawn_and_removed_with_its_query(
    watch: Any, expect: Any, wait_for: Any
) -> None:
    watched = watch()
    page = watched.open()
    wait_for(lambda: len(watched.sessions()) == 2)
    operator(page, "InnerJoin [rid = rid]").click()
    page.get_by_role("button", name="Add graph").click()
    expect(page.locator("#add-graph textarea")).to_have_value(re.compile("'selectivity'"))
    page.get_by_role("button", name="Add", exact=True).click()
    wait_for(lambda: len(watched.sessions()) == 3)
    watched.pass_seconds(20)
    graph = page.locator(".graph")
    expect(graph.locator(".chart-legend li", has_text="rows in per second")).to_contain_text("41")
    expect(graph.locator(".chart-legend li", has_text="selectivity")).to_contain_text("0.25")
    expect(graph.locator(".unit")).to_have_text(["rows/s", "selectivity"])
    line = graph.locator("path.series").first.get_attribute("d")
    assert line.count("L") > 10
    # A second one from the property's own button; the text goes to the editor.
    page.get_by_role("button", name="Draw rows out per second against time").click()
    expect(graph).to_have_count(2)
    wait_for(lambda: len(watched.sessions()) == 4)
    graph.first.get_by_text("This graph is the query").click()
    with page.expect_popup() as opened:
        graph.first.get_by_role("link", name="Open in the editor").click()
    expect(opened.value.locator(".cm-content")).to_contain_text("FROM sys_stream")
    opened.value.close()
    graph.first.get_by_role("button", name="Remove graph").click()
    expect(graph).to_have_count(1)
    wait_for(lambda: len(watched.sessions()) == 3)


def test_the_list_of_lines_says_one_row_and_two_rows(
    watch: Any, expect: Any, wait_for: Any
) -> None:
    watched = watch(("base", "gw-1"))
    watched.plan.waiting = 1
    page = watched.open()
    wait_for(lambda: len(watched.sessions()) == 2)
    page.get_by_role("button", name="Add graph").click()
    page.locator("#add-graph select").select_option(label="Waiting rows between operators")
    page.get_by_role("button", name="Add", exact=True).click()
    wait_for(lambda: len(watched.sessions()) == 3)
    value = page.locator(".chart-legend li b")
    expect(value).to_have_text(["1 row", "1 row"])
    watched.plan.waiting = 2
    watched.pass_seconds(1)
    expect(value).to_have_text(["2 rows", "2 rows"])


def test_a_query_of_ones_own_is_checked_and_drawn_as_it_holds(
    watch: Any, expect: Any, wait_for: Any
) -> None:
    watched = watch()
    page = watched.open()
    wait_for(lambda: len(watched.sessions()) == 2)
    page.get_by_role("button", name="Add graph").click()
    page.locator("#add-graph select").select_option(label="Your own query")
    page.locator("#add-graph textarea").fill("SELECT sit FROM sys_stream")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#add-graph .problem")).to_contain_text("sit")
    text = "SELECT rid, COUNT(*) AS seats FROM SeatSensor GROUP BY rid"
    page.locator("#add-graph textarea").fill(text)
    page.locator("#add-graph textarea").press("Control+Enter")
    expect(page.locator("#add-graph")).to_be_hidden()
    query = wait_for(lambda: next((q for q in watched.sessions() if q.text == text), None))
    watched.console.push(query.id, (1, ("L101", 4)), (1, ("L102", 9)))
    lines = page.locator(".chart-legend li")
    expect(lines).to_have_text([re.compile("L101.*4"), re.compile("L102.*9")])
    watched.console.push(query.id, (-1, ("L101", 4)), (1, ("L101", 5)), (-1, ("L102", 9)))
    expect(lines).to_have_text([re.compile("L101.*5"), re.compile("L102.*\u2013")])
    page.get_by_role("button", name="Add graph").click()
    page.locator("#add-graph select").select_option(label="Your own query")
    page.locator("#add-graph textarea").fill("SELECT mid FROM SeatSensor")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".graph-notice.bad")).to_contain_text("This query has no number to draw")


def test_it_looks_further_back_where_a_site_reports_seldom(
    watch: Any, expect: Any, wait_for: Any
) -> None:
    watched = watch()
    page = watched.open()
    watched.plan.report_seconds = 12
    watched.pass_seconds(1)
    wait_for(lambda: any("RANGE 30 SECONDS" in query.text for query in watched.sessions()))
    wait_for(lambda: len(watched.sessions()) == 2, "the query before has ended")
    expect(page.locator("#plan-text")).to_contain_text("RANGE 30 SECONDS")


def test_leaving_the_page_ends_its_queries(watch: Any, wait_for: Any) -> None:
    watched = watch()
    page = watched.open()
    page.get_by_role("button", name="Add graph").click()
    page.get_by_role("button", name="Add", exact=True).click()
    wait_for(lambda: watched.read() == 3, "the page reads its queries")
    page.goto(f"{watched.console.address}/data")
    wait_for(lambda: not watched.sessions(), "the session queries end")


def test_what_is_missing_is_said_in_words(
    watch: Any, console: Any, expect: Any, wait_for: Any
) -> None:
    watched = watch()
    page = watched.open()
    said = page.locator("#plan-message")
    console.do(lambda: console.coordinator.set_site("gw-2", "stale"))
    expect(said).to_contain_text("gw-2 is offline")
    expect(page.locator(".site-box.away")).to_have_count(1)
    console.do(lambda: console.coordinator.set_site("gw-2", "live"))
    expect(said).to_be_hidden()
    # A query of the page that ends, as when the console starts anew, is started again.
    first = watched.sessions()[0].id
    httpx.delete(f"{console.address}/api/queries/{first}", trust_env=False, timeout=60)
    wait_for(lambda: len(watched.sessions()) == 2 and watched.sessions()[1].id != first)
    httpx.delete(f"{console.address}/api/queries/{watched.query}", trust_env=False, timeout=60)
    expect(said).to_contain_text(f"{watched.query} was stopped")


def test_of_a_query_that_reads_the_run_of_another_the_run_is_shown(watch: Any) -> None:
    watched = watch()
    running = watched.console.coordinator.running[watched.query]
    shared = replace(running.info, run="q77")
    watched.console.do(lambda: setattr(running, "info", shared))
    watched.open()
    asked = [info.text for info in watched.sessions()]
    assert len(asked) == 2
    assert all("query = 'q77'" in text for text in asked)


@pytest.mark.parametrize("text", ["Scan stream seatsensor", f"RemoteSource[{NOT_SHOWN}]"])
def test_a_fragment_that_another_run_feeds_is_drawn_dashed_with_its_run(
    watch: Any, expect: Any, problems: Any, text: str
) -> None:
    watched = watch(("base",))
    scan = {"operator": text.partition(" ")[0].partition("[")[0], "text": text, "inputs": []}
    remote = {"operator": "RemoteSource", "text": "RemoteSource[f1]", "inputs": []}
    data = {
        "fragments": [
            {"id": "f0", "sites": ["base"], "plan": remote},
            {"id": "f1", "sites": ["gw-1", "gw-2"], "plan": scan},
        ],
        "fed": {"f1": {"run": "q77", "fragment": "f3"}},
    }
    answer = StatementResult(ResultKind.TEXT, data=data)
    watched.console.coordinator.explain = lambda _query: answer
    page = watched.open()
    expect(page.locator(".site-name")).to_have_text(["base", "gw-1", "gw-2"])
    fed = page.locator(".operator.fed")
    expect(fed).to_have_count(2)
    expect(fed.first).to_contain_text("fed by run q77")
    assert fed.first.locator("rect").evaluate("e => getComputedStyle(e).strokeDasharray") != "none"
    expect(page.locator(".picture .edge.crossing.fed")).to_have_count(2)
    expect(page.locator(".rate", has_text="run q77")).to_have_count(2)
    expect(page.locator(".edge.missing")).to_have_count(0)
    assert problems == []


def test_without_a_query_the_way_to_one_is_shown(console: Any, page: Any, expect: Any) -> None:
    page.route("**/api/queries*", lambda route: route.fulfill(json=[]))
    page.goto(f"{console.address}/monitor")
    expect(page.locator("#plan-message")).to_contain_text("No query runs. Start one on Queries")


def test_a_query_that_is_not_there_is_not_taken_for_another(
    watch: Any, console: Any, page: Any, expect: Any
) -> None:
    watched = watch()
    page.goto(f"{console.address}/monitor?query=q99")
    expect(page.locator("#plan-message")).to_contain_text("There is no query q99")
    expect(page.locator(".operator")).to_have_count(0)
    page.select_option("#query", watched.query)
    expect(page.locator(".operator")).not_to_have_count(0)


def test_many_equal_gateways_are_folded_and_unfolded(watch: Any, expect: Any) -> None:
    watched = watch(("base", *(f"gw-{n}" for n in range(1, 9))))
    page = watched.open()
    expect(page.locator(".site-title")).to_have_count(4)
    expect(page.locator(".site-box.folded")).to_have_count(1)
    page.get_by_role("button", name="show site gw-5").click()
    expect(page.locator(".site-title")).to_have_count(5)


def test_it_fits_a_phone(watch: Any, expect: Any) -> None:
    watched = watch()
    watched.page.set_viewport_size({"width": 390, "height": 800})
    page = watched.open()
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 390
    operator(page, "Project mid, rid", "base").click()
    expect(page.locator("#properties")).to_contain_text("Operator f0/1")
    boxes = [page.locator(s).bounding_box() for s in (".plan-pane", ".entity-pane", ".graphs-pane")]
    tops = [box["y"] for box in boxes]
    ends = [box["y"] + box["height"] for box in boxes]
    assert tops[1] >= ends[0]
    assert tops[2] >= ends[1]
