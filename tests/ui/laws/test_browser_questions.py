"""Why a row is there, and what breaks without a link, in a real browser."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus

pytestmark = pytest.mark.browser

LINKS = [
    ("a", "b", 1.0, 0.9, 0),
    ("b", "a", 1.1, 0.9, 0),
    ("b", "c", 1.0, 0.8, 0),
    ("a", "c", 3.0, 0.5, 0),
    ("c", "d", 2.0, 1.0, 0),
]
REACH = "SELECT src, dst FROM reachable"
PAIRS = [(a, b) for a in "ab" for b in "abcd"] + [("c", "d")]


@pytest.fixture
def network(console: Any) -> Any:
    """A console over five links, and a running query of what they connect."""

    def answers(text: str) -> list[Any]:
        found: dict[str, list[Any]] = {REACH: PAIRS, 'SELECT * FROM "link"': LINKS}
        return found.get(text, [])

    def prepare() -> None:
        console.coordinator.base["link"] = list(LINKS)
        console.coordinator.answers = answers

    console.do(prepare)
    return console


def start(console: Any, client: Any) -> Any:
    """Run the query of what reaches what."""
    result = client.post("/api/statements", json={"text": REACH, "name": "reach"}).json()
    assert console.address
    return result[0]["query"]["id"]


def row(page: Any, src: str, dst: str) -> Any:
    cells = (page.locator(f"td:text-is('{value}')") for value in (src, dst))
    found = page.locator("#rows tbody tr")
    for cell in cells:
        found = found.filter(has=cell)
    return found.first


def test_a_clicked_row_is_explained_and_a_base_row_thought_away(
    network: Any, client: Any, page: Any, problems: list[str], expect: Any
) -> None:
    start(network, client)
    page.goto(f"{network.address}/queries")
    page.locator("#queries button").filter(has_text="reach").click()
    expect(page.locator("#hint")).to_have_text("Click a row to see why it is there.")
    row(page, "a", "d").click()
    panel = page.locator("#why")
    expect(panel.locator(".supports > li")).to_have_count(2)
    first = panel.locator(".supports > li").first
    assert first.locator(".chip").all_inner_texts() == ["a → c", "c → d"]
    expect(panel).to_contain_text("stays while all base rows of any one group exist")
    expect(panel).to_contain_text("These 2 groups are all there are")
    panel.locator("select").select_option("link.pdr")
    # 1 - (1 - 0.5) * (1 - 0.9 * 0.8), and the last link is certain.
    expect(panel.locator(".share")).to_have_text("86 %")
    first.locator(".chip").nth(1).click()
    expect(panel.locator(".facts-list")).to_contain_text("pdr")
    panel.get_by_role("button", name="What if it is deleted?").click()
    expect(panel.locator(".breaks")).to_contain_text("Without c → d, 3 of 9 rows would go.")
    expect(page.locator("#rows tr.doomed")).to_have_count(3)
    page.get_by_role("tab", name="Plan").click()  # it must not lie under the answer
    expect(panel).to_be_hidden()
    page.get_by_role("tab", name="Rows").click()
    row(page, "a", "d").click()
    expect(panel).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#rows tr.doomed")).to_have_count(0)
    # By keyboard as well: the row has the focus, Enter asks.
    row(page, "a", "b").focus()
    page.keyboard.press("Enter")
    expect(panel).to_contain_text("It depends on this base row alone:")
    assert problems == []


def test_a_clicked_link_shows_what_breaks(
    network: Any, client: Any, page: Any, problems: list[str], expect: Any
) -> None:
    start(network, client)
    page.goto(f"{network.address}/network")
    expect(page.locator("#counts")).to_have_text("4 nodes, 5 links")
    expect(page.locator("line.link")).to_have_count(4)
    page.locator("line.hit", has=page.get_by_text("c → d")).dispatch_event("click")
    verdict = page.locator("#verdict")
    expect(verdict).to_contain_text("Without c → d, 3 of 9 rows would go.")
    expect(page.locator(".node.hurt")).to_have_count(4)
    verdict.locator(".minus", has_text="b").hover()
    expect(page.locator(".node.pointed")).to_have_count(2)
    page.locator("#find").fill("a ↔ b")
    page.locator("#find").dispatch_event("change")
    expect(page.locator("#pair")).to_have_text("a ↔ b")
    expect(verdict).to_contain_text("Without both directions,")
    page.locator("#both").uncheck()
    expect(verdict).to_contain_text("Without a → b,")
    page.locator("#target").select_option("view:cheapest_path")
    expect(verdict.locator("h3")).to_have_text("cheapest_path")
    expect(verdict.locator(".plus").first).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#guide")).to_be_visible()
    expect(page.locator("line.gone")).to_have_count(0)
    # The drawing is live: a link that comes brings its node along.
    (followed,) = network.do(lambda: network.coordinator.queries("session"))
    network.push(followed.id, (1, ("d", "e", 1.0, 1.0, 0)), (-1, LINKS[3]))
    expect(page.locator("#counts")).to_have_text("5 nodes, 5 links")
    assert problems == []


def test_a_failed_query_is_not_asked_and_is_not_said_to_move(
    network: Any, client: Any, page: Any, problems: list[str], expect: Any
) -> None:
    start(network, client)
    failed = QueryStatus.FAILED
    network.do(lambda: network.coordinator.set_status("reach", failed, "recursion grew too large"))
    page.goto(f"{network.address}/network")
    expect(page.locator("#counts")).to_have_text("4 nodes, 5 links")
    expect(page.locator("#target")).to_have_value("view:reachable")
    page.goto(f"{network.address}/queries")
    page.locator("#queries button").filter(has_text="reach").click()
    expect(page.locator("#facts")).to_contain_text("stopped by an error")
    expect(page.locator("#waiting")).to_have_text("recursion grew too large")
    assert problems == []


def test_a_network_without_links_says_so(
    console: Any, page: Any, problems: list[str], expect: Any
) -> None:
    page.goto(f"{console.address}/network")
    expect(page.locator("#empty")).to_have_text("No link in link now.")
    expect(page.locator("#target")).to_have_value("view:reachable")
    assert problems == []


def test_links_are_found_by_one_end_too_and_what_is_not_there_is_said(
    network: Any, client: Any, page: Any, problems: list[str], expect: Any
) -> None:
    def find(text: str) -> None:
        page.locator("#find").fill(text)
        page.locator("#find").press("Enter")

    start(network, client)
    page.goto(f"{network.address}/network")
    expect(page.locator("#counts")).to_have_text("4 nodes, 5 links")
    found = page.locator("#found")
    find("C")
    expect(found.locator("h3")).to_have_text("3 links of C")
    expect(found.locator("button")).to_have_text(["a ↔ c", "b ↔ c", "c ↔ d"])
    expect(page.locator("line.chosen")).to_have_count(3)
    expect(page.locator("#guide")).to_be_hidden()
    found.get_by_role("button", name="c ↔ d").click()
    expect(page.locator("#verdict")).to_contain_text("Without c → d, 3 of 9 rows would go.")
    find("d")  # its only link is asked about at once
    expect(page.locator("#pair")).to_have_text("c → d")
    expect(found).to_be_hidden()
    find("c -> b")
    expect(page.locator("#pair")).to_contain_text("b")
    find("nowhere")
    expect(found.locator("h3")).to_have_text("No link of nowhere now")
    expect(found).to_contain_text("Write the name of a node, or both ends of a link: a ↔ b")
    expect(page.locator("#asked")).to_be_hidden()
    find("")
    expect(page.locator("#guide")).to_be_visible()
    expect(found).to_be_hidden()
    assert problems == []
