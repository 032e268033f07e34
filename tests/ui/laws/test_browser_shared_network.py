"""The network of queries in a real browser: drawn, folded, followed along its lines."""

import re
from dataclasses import replace
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.network_model import (
    Network,
    NetworkNode,
    NodeKind,
    NodeQuery,
)

pytestmark = pytest.mark.browser


def node(name: str, kind: NodeKind = NodeKind.ROWS, **more: Any) -> NetworkNode:
    run, _, fragment = name.partition("/")
    return NetworkNode(
        name,
        f"q{run}",
        fragment or "f0",
        kind,
        more.pop("computes", f"what {name} computes"),
        **{"sites": ("gw-1",) if fragment else ("base",), "owner": f"query-{run}", **more},
    )


def queries(*names: str) -> dict[str, Any]:
    return {"queries": tuple(NodeQuery(name, name) for name in names), "direct": len(names)}


LEAF = node(
    "1/f1",
    NodeKind.SELECTION,
    sources=("seatsensor",),
    readers=("1", "2"),
    resting=4,
    bytes=40.0,
    messages=0.5,
)
FIRST = node("1", reads=("1/f1",), resting=3, rows=7, **queries("a", "b", "c"))
JOIN = node(
    "2", NodeKind.JOIN, reads=("1/f1",), sources=("machines",), resting=1, **queries("joined")
)
NETWORK = Network((LEAF, FIRST, JOIN), queries=4)


@pytest.fixture
def shown(console: Any, page: Any) -> Any:
    """Show a network on the page of the monitor."""

    def show(network: Network = NETWORK) -> Any:
        console.coordinator.nodes = network
        page.goto(f"{console.address}/monitor#network")
        page.wait_for_selector("#network[open]")
        return page

    return show


def box(page: Any, label: str) -> Any:
    return page.locator("#network-plan [role=button]").filter(has_text=label).first


def test_sources_are_left_and_queries_right_and_lines_as_wide_as_their_use(
    shown: Any, expect: Any, problems: Any
) -> None:
    page = shown()
    expect(page.locator("#network-facts")).to_have_text("3 nodes, 4 queries")
    expect(page.locator(".unit")).to_have_count(2)  # node 1 only gathers: its queries say so
    expect(page.locator(".pill .name")).to_have_text(["3 queries", "joined"])
    places = [page.locator(f".{kind}").first for kind in ("source-mark", "unit", "pill")]
    lefts = [place.bounding_box()["x"] for place in places]
    assert lefts == sorted(lefts)
    widths = [float(each.get_attribute("stroke-width")) for each in page.locator(".share").all()]
    assert len(widths) == 5
    assert max(widths) > 1.5 * min(widths)
    expect(page.locator(".share.unmeasured")).to_have_count(0)
    page.get_by_label("Lines are as wide as").select_option("bytes")
    expect(page.locator(".share.unmeasured")).to_have_count(4)
    kinds = page.locator("#network-kinds li")
    expect(kinds).to_have_text([re.compile(f"{kind}$") for kind in ("join", "rows", "selection")])
    assert problems == []


def test_a_node_says_what_it_is_and_leads_on(shown: Any, expect: Any, console: Any) -> None:
    console.run(console.coordinator.execute("SELECT mid FROM SeatSensor", name="a"))
    page = shown(replace(NETWORK, nodes=(LEAF, replace(FIRST, **queries("q1")), JOIN)))
    details = page.locator("#network-details")
    expect(details).to_contain_text("Choose a source, a node or queries")
    box(page, "1/f1").click()
    for words in ("what 1/f1 computes", "4 queries", "gw-1", "0.5 messages/s", "40 bytes/s"):
        expect(details).to_contain_text(words)
    expect(page.locator(".lit.unit")).to_have_count(2)
    details.get_by_role("button", name="2", exact=True).click()
    expect(details).to_contain_text("what 2 computes")
    expect(box(page, "what 2 computes")).to_have_attribute("aria-pressed", "true")
    details.get_by_role("button", name="machines").click()
    expect(details).to_contain_text("1 node reads it itself")
    expect(page.locator(".lit.source-mark")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(details).to_contain_text("Choose a source")
    box(page, "q1").click()
    expect(details).to_contain_text("Node 1: 1 query, 7 rows")
    details.get_by_role("button", name="q1").click()
    expect(page).to_have_url(f"{console.address}/monitor?query=q1#network")
    expect(page.locator(".pill.of-query")).to_have_count(1)


def test_keys_go_along_the_lines(shown: Any, expect: Any) -> None:
    page = shown(Network((LEAF, FIRST, replace(JOIN, sources=())), queries=4))
    expect(page.locator("#network-plan [tabindex='0']")).to_have_count(1)
    box(page, "seatsensor").focus()
    page.keyboard.press("ArrowRight")
    expect(box(page, "1/f1")).to_be_focused()
    page.keyboard.press("ArrowRight")
    focused = page.locator("#network-plan :focus")
    assert focused.get_attribute("class").split()[0] in {"pill", "unit"}
    page.keyboard.press("ArrowLeft")
    expect(box(page, "1/f1")).to_be_focused()
    expect(page.locator("#network-plan [tabindex='0']")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("#network-details")).to_contain_text("what 1/f1 computes")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#network-plan :focus")).to_have_attribute("class", "source-mark lit")


def test_what_comes_and_goes_is_drawn_and_the_focus_stays(
    shown: Any, expect: Any, console: Any
) -> None:
    page = shown()
    box(page, "1/f1").click()
    more = node("3", NodeKind.AGGREGATE, reads=("1/f1",), resting=1, **queries("new"))
    leaf = replace(LEAF, resting=5, readers=("1", "2", "3"))
    console.coordinator.nodes = Network((leaf, FIRST, JOIN, more), queries=5)
    expect(page.locator(".unit")).to_have_count(3)
    expect(box(page, "1/f1")).to_contain_text("5")
    expect(box(page, "1/f1")).to_be_focused()
    expect(box(page, "1/f1")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#network-details")).to_contain_text("5 queries")
    console.coordinator.nodes = Network(())
    message = page.locator("#network-message")
    expect(message).to_contain_text("No query runs. Start one on Queries")
    expect(page.locator("#network-plan .unit")).to_have_count(0)
    console.coordinator.nodes = Network((), hidden=3)
    expect(message).to_contain_text("none that you may read")
    console.coordinator.nodes = replace(NETWORK, hidden=2, unlisted=9)
    expect(message).to_contain_text(
        "Not drawn: 9 nodes on which fewer queries rest, and 2 nodes of"
    )


def test_many_thin_nodes_are_one_until_each_is_asked_for(shown: Any, expect: Any) -> None:
    names = tuple(str(number) for number in range(10, 130))
    leaf = replace(LEAF, readers=names, resting=120)
    thin = [
        node(name, NodeKind.SELECTION, reads=("1/f1",), resting=1, **queries(f"thin-{name}"))
        for name in names[:100]
    ]
    alone = [
        node(f"{name}/f1", NodeKind.SELECTION, sources=("seatsensor",), readers=(name,), resting=1)
        for name in names[100:]
    ]
    ends = [
        node(name, reads=(f"{name}/f1",), resting=1, **queries(f"alone-{name}"))
        for name in names[100:]
    ]
    page = shown(Network((leaf, *thin, *alone, *ends), queries=120))
    expect(page.locator(".unit")).to_have_count(3)
    expect(box(page, "alike, one query each")).to_contain_text("100")
    expect(page.locator(".pill .name")).to_have_text(["100 queries", "20 queries"])
    box(page, "of seatsensor").click()
    details = page.locator("#network-details")
    expect(details).to_contain_text("20 nodes that are alike")
    expect(details).to_contain_text("what 110/f1 computes")
    details.get_by_role("button", name="Draw each").click()
    expect(page.locator(".unit")).to_have_count(22)


def test_a_narrow_page_has_it_all_below_one_another(shown: Any, expect: Any, page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    shown()
    expect(page.locator(".unit")).to_have_count(2)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    picture = page.locator(".network-body .picture").bounding_box()
    details = page.locator("#network-details").bounding_box()
    assert details["y"] >= picture["y"] + picture["height"]


def test_nothing_is_asked_for_while_the_section_is_closed(
    console: Any, page: Any, requests: list[str]
) -> None:
    console.coordinator.nodes = NETWORK
    page.goto(f"{console.address}/monitor")
    page.wait_for_selector("#query option[value=q1]", state="attached")
    assert not any("/api/network" in address for address in requests)
    page.get_by_text("Network of queries").click()
    page.wait_for_selector("#network-plan .unit")
    assert any("/api/network" in address for address in requests)
