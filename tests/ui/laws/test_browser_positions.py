"""Computed positions on the map, in a real browser."""

from typing import Any

import pytest

from ui.map import declared_links

pytestmark = pytest.mark.browser

HEARING = """
CREATE SOURCE heard (badge TEXT, receiver TEXT, rssi DOUBLE, ts TIMESTAMP) WITH (ttl = '1 min');
CREATE TABLE receiver (receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE)
  WITH (source = 'csv', path = 'receiver.csv')"""


def badge(page: Any, name: str) -> Any:
    return page.locator(f".position[aria-label^='{name}:']")


@pytest.mark.parametrize("width", [1366, 390])
def test_badges_stand_at_their_computed_positions_and_move(
    page: Any, console: Any, expect: Any, problems: list[str], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(console.address)
    page.wait_for_selector(".desk[aria-label^='lab']")
    toggle = page.get_by_label("Positions", exact=True)
    expect(toggle).to_be_hidden()
    expect(page.locator("#legend .position")).to_be_hidden()
    first, other = (
        ("ann", "L012", 0, 12.0, 9.0, 2.0, 0.73),
        ("bob", "T013", 0, None, None, 0.0, 0.5),
    )
    console.coordinator.answers = lambda text: [first, other] if "centroid" in text else []
    console.run(console.coordinator.execute(HEARING))
    expect(badge(page, "ann")).to_be_visible()
    label = "ann: Drop-in lab, Ground floor, at 12.0, 9.0 m, confidence 73 %"
    expect(badge(page, "ann")).to_have_attribute("aria-label", label)
    expect(badge(page, "ann")).to_contain_text("L012 · 73 %")
    expect(badge(page, "bob")).to_contain_text("T013 · 50 %")
    assert " at " not in badge(page, "bob").get_attribute("aria-label")
    expect(toggle).to_be_checked()
    expect(page.locator("#legend li", has_text="computed position")).to_be_visible()
    expect(page.locator("#positions-state")).to_have_text("2 badges, 2 on this level")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    before = badge(page, "ann").bounding_box()
    (query,) = [q for q in console.coordinator.queries() if "centroid" in q.text]
    moved = ("ann", "L012", 0, 15.0, 9.0, 2.0, 0.9)
    console.push(query.id, (-1, first), (1, moved))
    expect(badge(page, "ann")).to_contain_text("L012 · 90 %")
    wait = "([left]) => document.querySelector(\".position[aria-label^='ann:']\")"
    page.wait_for_function(f"{wait}.getBoundingClientRect().left > left + 3", arg=[before["x"]])
    upstairs = ("ann", "L101", 1, None, None, 0.0, 0.4)
    console.push(query.id, (-1, moved), (1, upstairs))
    expect(badge(page, "ann")).to_have_count(0)
    expect(page.locator("#positions-state")).to_have_text("2 badges, 1 on this level")
    page.locator("#levels button[data-level='1']").click()
    expect(badge(page, "ann")).to_contain_text("L101 · 40 %")
    badge(page, "ann").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#details h2")).to_contain_text("101")
    console.push(query.id, (-1, upstairs), (1, ("ann", "hall", 7, 1.0, 1.0, 0.0, 0.4)))
    expect(badge(page, "ann")).to_have_count(0)
    expect(page.locator("#positions-state")).to_contain_text("1 not on this plan (hall)")
    page.locator("#levels button[data-level='0']").click()
    toggle.uncheck()
    expect(badge(page, "bob")).to_have_count(0)
    toggle.check()
    expect(badge(page, "bob")).to_be_visible()
    console.push(query.id, (-1, other))
    expect(badge(page, "bob")).to_have_count(0)
    assert not problems


def test_another_view_is_chosen_and_remembered(page: Any, console: Any, expect: Any) -> None:
    console.coordinator.answers = lambda text: (
        [("ann", "L012", 0, 12.0, 9.0, 2.0, 0.7)]
        if "centroid" in text
        else [("ann", "T013", 0, "r1", -50.0, 0.2)]
        if "strongest" in text
        else []
    )
    console.run(console.coordinator.execute(HEARING))
    page.goto(console.address)
    expect(badge(page, "ann")).to_contain_text("L012 · 70 %")
    choice = page.get_by_label("Positions by")
    expect(choice.locator("option")).to_have_text(
        ["automatic (weighted_centroid)", "weighted_centroid", "strongest_room"]
    )
    choice.select_option("strongest_room")
    expect(badge(page, "ann")).to_contain_text("T013 · 20 %")
    page.reload()
    expect(badge(page, "ann")).to_contain_text("T013 · 20 %")
    expect(choice).to_have_value("relation:strongest_room")
    console.run(console.coordinator.execute("DROP TABLE receiver"))
    expect(badge(page, "ann")).to_have_count(0)
    expect(choice).to_be_hidden()


OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll(".position-label")]
    .map((label) => label.getBoundingClientRect()).filter(({ width }) => width);
  return boxes.some((a, i) => boxes.some((b, j) => i < j &&
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
}"""


def test_labels_of_many_badges_do_not_overlap(page: Any, console: Any, expect: Any) -> None:
    rows = [(f"b{n}", "L012", 0, None, None, 0.0, 0.5) for n in range(60)]
    console.coordinator.answers = lambda text: rows if "centroid" in text else []
    console.run(console.coordinator.execute(HEARING))
    page.goto(console.address)
    expect(page.locator("#map_plan .position")).to_have_count(60)
    expect(page.locator(".position-label:visible").first).to_be_visible()
    assert not page.evaluate(OVERLAPS)
    folded = page.locator(".position.is-folded")
    assert folded.count() > 30
    folded.first.focus()
    expect(folded.first.locator(".position-label")).to_be_visible()


def test_links_of_devices_in_a_table_are_drawn(page: Any, console: Any, expect: Any) -> None:
    page.goto(console.address)
    page.get_by_label("Radio links").check()
    ours = console.coordinator.links()
    mesh: list[Any] = [("0x00158d01", "0x00124b02", 1.1, "mesh", "gw-1")]
    console.coordinator.links = lambda: (*ours, *mesh)
    rows = [("0x00158d01", "L012", 0, 12.0, 9.0), ("0x00124b02", "T013", 0, None, None)]
    console.coordinator.answers = lambda text: rows if "standing" in text else []
    drawn = page.locator("path.link.good")
    expect(drawn).to_have_count(0)
    places = """CREATE TABLE standing (device TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE)
      WITH (source = 'csv', path = 'standing.csv')"""
    console.run(console.coordinator.execute(places))
    expect(drawn).to_have_count(1)
    mesh[:] = [("0x00158d01", "0x00124b02", None, "mesh", "gw-1")]
    expect(drawn).to_have_count(0)
    expect(page.locator("path.link")).to_have_count(1)
    mesh.clear()
    expect(page.locator("path.link")).to_have_count(0)


def test_links_without_room_are_counted(
    page: Any, console: Any, expect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declared_links, "MAX_LINKS", 1)
    mesh: list[Any] = [(f"0x{n}", "0x9", 1.0, "mesh", "gw-1") for n in range(4)]
    console.coordinator.links = lambda: tuple(mesh)
    page.goto(console.address)
    state = page.locator("#links-state")
    expect(state).to_have_text("3 more links are not drawn")
    mesh[1:] = []
    expect(state).to_be_hidden()
