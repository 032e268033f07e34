"""The map in a real browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def facts(site_file: Path) -> dict[str, Any]:
    """Properties of the site's features by id, machines and points apart."""
    features = json.loads(site_file.read_text())["features"]
    found: dict[str, Any] = {"machine": {}, "routing_point": {}, "edge": {}, "space": {}}
    for feature in features:
        properties = feature["properties"]
        found.setdefault(properties["feature_type"], {})[properties["id"]] = properties
    return found


def walk(facts: dict[str, Any], start: str, end: str) -> str:
    """A way between two routing points, as the route query words it."""
    ways: dict[str, list[str]] = {}
    for edge in facts["edge"].values():
        ways.setdefault(edge["src"], []).append(edge["dst"])
        ways.setdefault(edge["dst"], []).append(edge["src"])
    paths = {start: [start]}
    queue = [start]
    for point in queue:
        for following in ways.get(point, []):
            if following not in paths:
                paths[following] = [*paths[point], following]
                queue.append(following)
    return ">".join(paths[end])


@pytest.fixture
def map_page(console: Any, page: Any) -> Any:
    """The map, drawn."""
    page.goto(console.address)
    page.wait_for_selector(".desk[aria-label^='lab']")
    return page


def show_level(page: Any, ordinal: int) -> None:
    button = page.locator(f"#levels button[data-level='{ordinal}']")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"


def test_rooms_follow_the_lights(map_page: Any, console: Any, expect: Any) -> None:
    console.push("map-lights", (1, ("L012", "open")), (1, ("T013", "closed")))
    console.push("map-temperatures", (1, ("L012", 21.5)))
    expect(map_page.locator(".shape.is-open")).to_have_count(1)
    expect(map_page.locator(".shape.is-dark")).to_have_count(1)
    expect(map_page.locator(".room-label", has_text="21.5 °C")).to_have_count(1)
    console.push("map-lights", (1, ("L012", "closed")), (-1, ("L012", "open")))
    expect(map_page.locator(".shape.is-open")).to_have_count(0)
    expect(map_page.locator(".shape.is-dark")).to_have_count(2)
    console.push("map-reservations", (1, ("L012", "Exam", 0, 9_999_999_999_000_000)))
    expect(map_page.locator(".shape.is-reserved")).to_have_count(1)


def test_each_level_shows_its_own(map_page: Any, console: Any, expect: Any) -> None:
    console.push("map-lights", (1, ("L101", "open")))
    expect(map_page.locator(".shape.is-open")).to_have_count(0)
    show_level(map_page, 1)
    expect(map_page.locator(".shape.is-open")).to_have_count(1)
    expect(map_page.locator(".room-label b", has_text="Teaching lab 101")).to_be_visible()


def test_seats_and_free_machines_are_told_apart(
    map_page: Any, console: Any, facts: Any, expect: Any
) -> None:
    first, second, third = [name for name, m in facts["machine"].items() if m["room"] == "L012"][:3]
    console.push(
        "map-seats",
        (1, (first, "L012", True)),
        (1, (second, "L012", False)),
        (1, (third, "L012", False)),
    )
    console.push("map-free", (1, (second, "L012")))
    console.push("map-loads", (1, (third, 0.9, 0.5, 1, "blender", 0.8, 50.0)))

    def desk(name: str) -> Any:
        return map_page.locator(f".desk[aria-label^='{name}:']")

    expect(desk(first)).to_have_class(re.compile(r"is-taken"))
    expect(desk(second)).to_have_class(re.compile(r"is-free"))
    expect(desk(third)).to_have_class(re.compile(r"is-busy"))
    expect(map_page.locator("#counts")).to_have_text("Machines on this level: 1 free, 2 in use")


def test_a_machine_shows_what_is_known_of_it_and_takes_orders(
    map_page: Any, console: Any, facts: Any, expect: Any
) -> None:
    machine = next(m for m in facts["machine"].values() if m["room"] == "L012")
    name = machine["id"]
    console.push("map-seats", (1, (name, "L012", False)))
    console.push("map-loads", (1, (name, 0.4, 0.25, 2, "latexmk", 0.3, 48.26)))
    console.push("map-energy", (1, (name, 80.0)))
    map_page.locator(f".desk[aria-label^='{name}:']").click()
    pane = map_page.locator("#details")
    for text in (
        name,
        machine["host"],
        machine["cpu"],
        "40 %",
        "latexmk (30 %)",
        "48.3 °C",
        "80.0 W",
    ):
        expect(pane).to_contain_text(text)
    pane.get_by_role("tab", name="Energy per task").click()
    expect(pane.locator("tr", has_text="latexmk")).to_contain_text("60.0 W")
    pane.get_by_role("button", name="Sit down here").click()
    expect(pane).to_contain_text("Sent.")
    sent = {"action": "sit", "mid": name}
    assert console.coordinator.commands == [(machine["gateway"], "simulate", sent)]
    console.push("map-seats", (-1, (name, "L012", False)), (1, (name, "L012", True)))
    expect(pane).to_contain_text("in use: somebody sits at it")
    map_page.keyboard.press("Escape")
    expect(pane).not_to_contain_text(name)


def test_the_route_is_drawn_over_levels_and_moves_by_itself(
    map_page: Any, console: Any, facts: Any, expect: Any
) -> None:
    labs = [m for m in facts["machine"].values() if "LaTeX" in m["software"]]
    near = next(m for m in labs if m["level"] == 0)
    far = next(m for m in labs if m["level"] == 1)
    start = facts["space"]["O011"]["point"]
    ways = {m["id"]: walk(facts, start, m["point"]) for m in (near, far)}
    console.coordinator.answers = lambda text: (
        [(21.4, near["id"], ways[near["id"]])] if "'O011'" in text and "'LaTeX'" in text else []
    )
    map_page.select_option("#route-software", "LaTeX")
    map_page.locator(".shape.space").nth(0).wait_for()
    # Once a package is chosen, a click on a room says where one stands.
    map_page.select_option("#route-from", "O011")
    answer = map_page.locator("#route-answer")
    expect(answer).to_contain_text(f"21 m to {near['id']}")
    expect(map_page.locator("path.route").first).to_be_visible()
    expect(map_page.locator(".desk.target")).to_have_count(1)
    (query,) = [q for q in console.coordinator.queries() if q.origin == "session"]
    console.push(
        query.id,
        (-1, (21.4, near["id"], ways[near["id"]])),
        (1, (63.2, far["id"], ways[far["id"]])),
    )
    expect(answer).to_contain_text(f"63 m to {far['id']}")
    expect(answer).to_contain_text("· new target: the previous machine is no longer free")
    expect(answer).to_contain_text("to First floor")
    expect(map_page.locator(".route-change")).to_be_visible()
    map_page.locator(".route-change").click()
    expect(map_page.locator("#levels [aria-pressed=true]")).to_have_text("First floor")
    expect(map_page.locator(".desk.target")).to_have_count(1)
    console.push(query.id, (-1, (63.2, far["id"], ways[far["id"]])), (1, (None, None, None)))
    expect(answer).to_contain_text("No reachable machine with LaTeX is free now")
    expect(map_page.locator("path.route")).to_have_count(0)


def test_a_place_that_nothing_joins_to_a_machine_is_told_from_no_free_machine(
    console: Any, page: Any, expect: Any, site_file: Path
) -> None:
    site = json.loads(site_file.read_text())

    def is_kept(feature: dict[str, Any]) -> bool:
        ends = {feature["properties"].get("src"), feature["properties"].get("dst")}
        return "r-O011" not in ends

    site["features"] = [feature for feature in site["features"] if is_kept(feature)]
    for feature in site["features"]:
        if feature["properties"]["feature_type"] == "edge":
            feature["properties"]["wheelchair"] = False
    page.route("**/api/site.geojson", lambda route: route.fulfill(json=site))
    console.coordinator.answers = lambda _text: [(None, None, None)]
    page.goto(console.address)
    page.wait_for_selector(".desk[aria-label^='lab']")
    answer = page.locator("#route-answer")
    page.select_option("#route-software", "LaTeX")
    page.select_option("#route-from", "O011")
    expect(answer).to_contain_text("No route leads from here to a machine with LaTeX")
    page.select_option("#route-from", "L012")
    expect(answer).to_contain_text("No reachable machine with LaTeX is free now")
    page.check("#route-wheelchair")
    expect(answer).to_contain_text("No route without steps leads from here to a machine with LaTeX")


def test_a_click_on_a_room_says_where_one_stands(map_page: Any, console: Any, expect: Any) -> None:
    map_page.select_option("#route-software", "Python")
    expect(map_page.locator("#route-answer")).to_contain_text("Now click the room where you are")
    box = map_page.locator("#map_plan").bounding_box()
    assert box is not None
    map_page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(map_page.locator("#route-from")).not_to_have_value("")
    asked: list[Any] = []
    for _ in range(600):  # the query is asked for after the list has changed
        asked = [q for q in console.coordinator.queries() if q.origin == "session"]
        if asked:
            break
        map_page.wait_for_timeout(100)
    assert len(asked) == 1


def test_a_dead_gateway_makes_its_rooms_stale(
    map_page: Any, console: Any, facts: Any, expect: Any
) -> None:
    gateway = facts["space"]["L012"]["gateway"]
    console.push("map-lights", (1, ("L012", "open")))
    expect(map_page.locator(".shape.is-open")).to_have_count(1)
    console.do(lambda: console.coordinator.set_site(gateway, "stale"))
    expect(map_page.locator("#notice")).to_contain_text(f"{gateway} is offline")
    expect(map_page.locator(".shape.is-open")).to_have_count(0)
    assert map_page.locator(".shape.is-stale").count() > 3
    console.do(lambda: console.coordinator.set_site(gateway, "live"))
    expect(map_page.locator(".shape.is-open")).to_have_count(1)
    expect(map_page.locator("#notice")).to_be_hidden()


def test_spark_warming_up_hides_nothing_else(
    map_page: Any, console: Any, expect: Any, starting: Any
) -> None:
    console.push("map-lights", (1, ("L012", "open")))
    console.do(lambda: console.coordinator.set_status("map-free", starting, "", "static"))
    expect(map_page.locator("#notice")).to_contain_text("Spark is warming up")
    expect(map_page.locator(".shape.is-open")).to_have_count(1)


def test_links_regions_and_visitors_are_drawn(map_page: Any, console: Any, expect: Any) -> None:
    console.push("map-links", (1, ("m-L012", "m-T013", 1.02)), (1, ("m-T013", "m-L012", 1.9)))
    map_page.get_by_label("Radio links").check()
    expect(map_page.locator("path.link.poor")).to_have_count(1)
    console.push("map-links", (-1, ("m-T013", "m-L012", 1.9)))
    expect(map_page.locator("path.link.good")).to_have_count(1)
    map_page.get_by_label("Radio links").uncheck()
    expect(map_page.locator("path.link")).to_have_count(0)
    console.push("map-regions", *((1, (f"temp-{r}", "temp-L012")) for r in ("L012", "T013")))
    expect(map_page.locator("path.region")).to_have_count(2)
    expect(map_page.locator("path.region-join")).to_have_count(1)
    console.push("map-visitors", (1, ("badge-2", "rfid-0-01")))
    expect(map_page.locator(".visitor:not(.key)")).to_have_text("2")
    expect(map_page.locator("#route-from option[value='badge-2']")).to_have_count(1)
    console.push("map-visitors", (-1, ("badge-2", "rfid-0-01")))
    expect(map_page.locator(".visitor:not(.key)")).to_have_count(0)


def test_a_radio_link_without_a_cost_is_neither_good_nor_poor(
    map_page: Any, console: Any, expect: Any
) -> None:
    map_page.get_by_label("Radio links").check()
    console.push("map-links", (1, ("m-L012", "m-T013", None)))
    expect(map_page.locator("path.link")).to_have_count(1)
    expect(map_page.locator("path.link.good, path.link.fair, path.link.poor")).to_have_count(0)
    console.push("map-links", (1, ("m-T013", "m-L012", 1.9)))
    expect(map_page.locator("path.link.poor")).to_have_count(1)


def test_nothing_is_fetched_from_elsewhere_and_nothing_fails(
    requests: Any, problems: Any, page: Any, console: Any
) -> None:
    for path in ("/queries", "/gateways", "/data", "/"):
        page.goto(f"{console.address}{path}")
        page.wait_for_function("performance.getEntriesByType('resource').length > 2")
    page.wait_for_selector(".desk")
    assert len(requests) > 20
    hosts = {request.split("/")[2] for request in requests if not request.startswith("data:")}
    assert hosts == {page.url.split("/")[2]}
    assert problems == []


def test_a_trace_shows_nodes_links_and_the_cheapest_path(
    trace_console: Any, page: Any, expect: Any, problems: Any
) -> None:
    links = [("0", "1", 1.1), ("1", "0", 1.2), ("1", "2", 1.6)]
    trace_console.push("map-links", *((1, link) for link in links))
    trace_console.coordinator.answers = lambda text: (
        [(2.7, "0>1>2")] if "src = '0'" in text and "node = '2'" in text else []
    )
    page.goto(trace_console.address)
    expect(page.locator(".node:not(.key)")).to_have_count(4)
    expect(page.locator("[aria-label^=node].isolated")).to_have_count(1)
    expect(page.locator("[aria-label^=node].isolated")).to_have_text("10")
    expect(page.locator("path.link")).to_have_count(2)
    page.get_by_role("button", name="node 0", exact=True).click()
    page.get_by_role("button", name="node 2", exact=True).click()
    expect(page.locator("#path-answer")).to_contain_text("2.70 expected transmissions, 2 hops")
    expect(page.locator("#path-answer")).to_contain_text("0 → 1 → 2")
    expect(page.locator(".node.on-path")).to_have_count(3)
    page.locator("#path-to").select_option("10")
    expect(page.locator("#path-answer")).to_contain_text("is not reachable")
    expect(page.locator("#path-answer")).not_to_contain_text("without a cost")
    trace_console.push("map-links", (1, ("2", "10", None)))
    page.locator("#path-from").select_option("1")
    expect(page.locator("#path-answer")).to_contain_text("Links without a cost are on no path")
    assert problems == []


def test_the_page_fits_a_tablet(console: Any, page: Any, expect: Any) -> None:
    page.set_viewport_size({"width": 820, "height": 1180})
    page.goto(console.address)
    expect(page.locator(".shape").first).to_be_visible()
    overflow = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert overflow <= 0


def test_what_is_simulated_says_so(map_page: Any, facts: dict[str, Any], expect: Any) -> None:
    made_up = sum(machine["simulated"] for machine in facts["machine"].values())
    chip = map_page.locator("#simulated")
    expect(chip).to_be_visible()
    expect(chip).to_have_attribute("title", re.compile(f"^{made_up} machines and .* simulated"))
    name = next(m["id"] for m in facts["machine"].values() if m["simulated"])
    map_page.fill("input[list=places]", name)
    map_page.press("input[list=places]", "Enter")
    expect(map_page.locator("#details")).to_contain_text("simulated machine")
    map_page.keyboard.press("Escape")
    map_page.fill("input[list=places]", "this-machine")
    map_page.press("input[list=places]", "Enter")
    expect(map_page.locator("#details")).to_contain_text("· this computer, with its measured load")


POSITIONS = """
CREATE SOURCE heard (badge TEXT, receiver TEXT, rssi DOUBLE, ts TIMESTAMP) WITH (ttl = '1 min');
CREATE TABLE radio_map (point TEXT, receiver TEXT, rssi DOUBLE)
  WITH (source = 'csv', path = 'r.csv');
CREATE TABLE calibration_point (point TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE)
  WITH (source = 'csv', path = 'c.csv')"""


def test_a_calibration_walk_keeps_what_is_heard_at_the_clicked_place(
    map_page: Any, console: Any, expect: Any
) -> None:
    map_page.get_by_text("Calibrate positions").click()
    expect(map_page.locator("#calibration-state")).to_contain_text("heard")
    console.run(console.coordinator.execute(POSITIONS))
    map_page.get_by_text("Calibrate positions").click()
    console.coordinator.answers = lambda text: (
        [("ann", "r1", -61.25, 9), ("ann", "r2", -80.0, 4), ("bob", "r1", -50.0, 9)]
        if "FROM heard" in text
        else []
    )
    map_page.get_by_text("Calibrate positions").click()
    expect(map_page.locator("#calibration-badge option")).to_have_count(3)
    map_page.locator("#calibration-badge").select_option("ann")
    show_level(map_page, 1)
    room = map_page.locator(".shape.kind-lab").first
    room.click()
    expect(map_page.locator("#calibration-state")).to_contain_text("recording")
    expect(map_page.locator("#calibration-save")).to_be_disabled()
    expect(map_page.locator("#calibration-save")).to_be_enabled(timeout=30_000)
    expect(map_page.locator("#calibration-heard li")).to_have_text(
        ["r1 -61.3 dBm (9)", "r2 -80.0 dBm (4)"]
    )
    map_page.locator("#calibration-save").click()
    expect(map_page.locator("#calibration-state")).to_contain_text("Saved as point-")
    levels, place = console.coordinator.inserted
    assert re.search(r"\('point-\d+', 'r1', -61.25\), \('point-\d+', 'r2', -80(\.0)?\)", levels)
    assert re.search(r"VALUES \('point-\d+', 'L1\w+', 1, -?\d+\.\d+, -?\d+\.\d+\)", place)
    assert "bob" not in levels


def test_calibration_points_are_listed_and_deleted(
    map_page: Any, console: Any, expect: Any
) -> None:
    map_page.get_by_text("Calibrate positions").click()
    expect(map_page.locator("#calibration-create")).to_be_visible()
    expect(map_page.locator("#calibration-missing")).to_contain_text("radio_map")
    rows = [("point-1", "L101", 1, 3.5, 8.0, 2), ("point-2", "L102", 1, None, None, 1)]
    console.coordinator.answers = lambda text: rows if "calibration_point c" in text else []
    map_page.locator("#calibration-create").click()
    created = "Created receiver, calibration_point, radio_map."
    expect(map_page.locator("#calibration-missing")).to_have_text(created)
    points = map_page.locator("#calibration-points li")
    expect(points).to_have_text(
        ["L102, 1 receiver Delete", "L101 at 3.5, 8.0 m, 2 receivers Delete"]
    )
    expect(map_page.locator("#calibration-count")).to_have_text("2 points")
    points.first.get_by_role("button", name="Delete").click()
    (query,) = [q for q in console.coordinator.queries() if "calibration_point c" in q.text]
    console.push(query.id, (-1, rows[1]))
    expect(points).to_have_count(1)
    assert [re.findall(r"DELETE FROM (\w+) .*point-2", t) for t in console.coordinator.deleted] == [
        ["calibration_point"],
        ["radio_map"],
    ]
