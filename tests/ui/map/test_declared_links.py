"""Links of declared sources on the map."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ui.map import declared_links
from ui.map.declared_links import DeclaredLinks, DrawnLinks, changes, drawn

LINKS = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xy")),
    st.one_of(st.none(), st.sampled_from((0.0, 1.0, 2.5))),
)


@given(LINKS, LINKS)
def test_changes_turn_one_set_into_the_other(before: Any, after: Any) -> None:
    rows = dict(before)
    for change in changes(before, after):
        ends, cost = (change["row"]["src"], change["row"]["dst"]), change["row"]["cost"]
        if change["diff"] > 0:
            rows[ends] = cost
        else:
            assert rows.pop(ends) == cost
    assert rows == after


def test_the_dearest_cost_counts_and_motes_have_a_layer_of_their_own() -> None:
    links = [
        ("a", "b", None, "mesh", "gw-1"),
        ("a", "b", 1.5, "zigbee", "gw-1"),
        ("a", "b", 1.25, "zigbee", "gw-2"),
        ("b", "a", 0.0, "mesh", "gw-1"),
        ("c", "d", 9.0, "link", "gw-1"),
    ]
    assert drawn(links) == DrawnLinks({("a", "b"): 1.5, ("b", "a"): 0.0})


def test_links_are_bounded_and_the_others_counted(monkeypatch: Any) -> None:
    monkeypatch.setattr(declared_links, "MAX_LINKS", 2)
    links = [(f"n{n}", "b", 1.0, "mesh", f"gw-{twice}") for n in range(5) for twice in (1, 2)]
    found = drawn([*links, ("n0", "b", 3.0, "mesh", "gw-2")])
    assert [*found.costs.values()] == [3.0, 1.0]
    assert found.more == 3


def test_readers_share_one_look_a_second(monkeypatch: Any) -> None:
    class Coordinator:
        looks = 0
        found: tuple[Any, ...] = (("a", "b", 1.0, "mesh", "gw-1"),)

        def links(self) -> tuple[Any, ...]:
            self.looks += 1
            return self.found

    made: list[object] = []

    def noted(links: Any) -> DrawnLinks:
        made.append(links)
        return drawn(links)

    monkeypatch.setattr(declared_links, "drawn", noted)
    now = [0]
    monkeypatch.setattr(declared_links, "monotonic_clock", lambda: now[0])
    coordinator = Coordinator()

    async def scenario() -> None:
        links = DeclaredLinks(coordinator)  # type: ignore[arg-type]
        first = await links.current()
        others = await asyncio.gather(*(links.current() for _ in range(20)))
        assert all(other is first for other in others)
        assert (coordinator.looks, len(made)) == (1, 1)
        now[0] += 1_000_000
        assert await links.current() is first  # the same tuple: nothing is made
        assert (coordinator.looks, len(made)) == (2, 1)
        now[0] += 1_000_000
        coordinator.found = (("a", "b", 2.0, "mesh", "gw-1"),)
        assert (await links.current()).costs == {("a", "b"): 2.0}

    asyncio.run(scenario())


def test_a_reader_gets_them_all_then_changes(console: Any, events: Any) -> None:
    mesh = [("0x1", "0x2", 1.5, "zigbee", "gw-1")]
    console.coordinator.links = lambda: tuple(mesh)
    stream = events(f"{console.address}/api/map/events")

    def of(**facts: Any) -> Any:
        return lambda v: v["layer"] == "declared" and facts.items() <= v.items()

    one = {"diff": 1, "row": {"src": "0x1", "dst": "0x2", "cost": 1.5}}
    stream.wait("layer", of(snapshot=True, changes=[one]))
    mesh.clear()
    stream.wait("layer", of(snapshot=False, changes=[{**one, "diff": -1}]))
