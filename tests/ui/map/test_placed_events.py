"""The map's layers of things that move."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.coordinator.contract.coordinator_model import Change
from streamsql.data.types import DataType
from tests.ui.map.test_placed_sources import HEARD, QUERY, RECEIVER
from ui.map.place_columns import BADGES, place_columns
from ui.map.placed_events import BoundedPlaces

COLUMNS = place_columns(("badge", "room"), (DataType.TEXT, DataType.TEXT), BADGES)
CENTROID = ("ann", "L101", 1, 3.5, 8.0, 2.0, 0.73)


def of(layer: str, *ids: str) -> Any:
    """Match a layer's event that brings these ids."""
    return lambda v: v["layer"] == layer and [c["row"]["id"] for c in v["changes"]] == [*ids]


def test_a_view_that_appears_is_followed_and_left_when_it_goes(console: Any, events: Any) -> None:
    stream = events(f"{console.address}/api/map/events")
    stream.wait("layer", of("positions"))
    stream.wait("positions", lambda v: v == {"offered": [], "followed": "", "others": 0})
    console.coordinator.answers = lambda text: [CENTROID] if "centroid" in text else []
    console.run(console.coordinator.execute(f"{HEARD};{RECEIVER}"))
    found = stream.wait("layer", of("positions", "ann"))
    assert found["snapshot"]
    assert found["changes"][0] == {
        "diff": 1,
        "row": {
            "id": "ann",
            "room": "L101",
            "floor": 1,
            "x": 3.5,
            "y": 8.0,
            "confidence": 0.73,
        },
    }
    stream.wait("positions", lambda v: v["followed"] == "relation:weighted_centroid")
    stream.wait("layers", lambda v: v.get("positions", {}).get("status") == "running")
    before = len(stream.seen)
    console.run(console.coordinator.execute("DROP TABLE receiver"))
    stream.wait("positions", lambda v: stream.seen[before:] and not v["followed"])
    assert stream.seen[-1] or of("positions")(stream.seen[-1][1])


def test_what_a_reader_chooses_is_followed(console: Any, events: Any) -> None:
    console.run(console.coordinator.execute(f"{HEARD};{RECEIVER};{QUERY}"))
    (query,) = [q for q in console.coordinator.queries() if q.origin == "user"]
    console.push(query.id, (1, ("bob", "L012", 0.1)))
    first = events(f"{console.address}/api/map/events")
    first.wait("layer", of("positions", "bob"))
    address = f"{console.address}/api/map/events?positions=relation:strongest_room"
    stream = events(address)
    stream.wait("positions", lambda v: v["followed"] == "relation:strongest_room")
    console.push(query.id, (-1, ("bob", "L012", 0.1)), (1, ("bob", "T013", 0.2)))
    moved = first.wait("layer", of("positions", "bob", "bob"))
    assert [(c["diff"], c["row"]["room"]) for c in moved["changes"]] == [(-1, "L012"), (1, "T013")]


def test_a_query_that_stops_leaves_an_empty_layer(console: Any, events: Any) -> None:
    console.run(console.coordinator.execute(f"{HEARD};{QUERY}"))
    (query,) = [q for q in console.coordinator.queries() if q.origin == "user"]
    console.push(query.id, (1, ("bob", "L012", 0.1)))
    stream = events(f"{console.address}/api/map/events")
    stream.wait("layer", of("positions", "bob"))
    console.run(console.coordinator.stop(query.id))
    stream.wait(
        "layer",
        lambda v: of("positions")(v) and ("layer", v) in stream.seen[3:] and v["snapshot"],
    )
    stream.wait("positions", lambda v: v["offered"] == [])


def test_tables_say_where_devices_are(console: Any, events: Any) -> None:
    row = ("r1", "L101", 1, 3.5, 8.0)
    console.coordinator.answers = lambda text: [row] if text.endswith('"receiver"') else []
    console.run(console.coordinator.execute(RECEIVER))
    stream = events(f"{console.address}/api/map/events")
    found = stream.wait("layer", of("places", "r1"))
    assert found["changes"][0]["row"]["room"] == "L101"


class Model:
    """All rows, as a reader that is told everything would have them."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], int] = {}

    def change(self, diff: int, row: tuple[str, str]) -> None:
        self.rows[row] = self.rows.get(row, 0) + diff
        if not self.rows[row]:
            del self.rows[row]


ROWS = st.tuples(st.sampled_from("abcdef"), st.sampled_from(("L1", "L2")))


@given(
    st.lists(st.lists(st.tuples(st.booleans(), ROWS), max_size=6), max_size=12), st.integers(1, 9)
)
def test_a_reader_has_so_many_rows_and_all_when_there_are_no_others(
    batches: list[list[tuple[bool, tuple[str, str]]]], most: int
) -> None:
    assert COLUMNS is not None
    model, places, told = Model(), BoundedPlaces(most), set[tuple[str, str]]()
    for batch in batches:
        made = []
        for is_there, row in batch:
            diff = 1 if is_there or row not in model.rows else -1
            model.change(diff, row)
            made.append(Change(0, diff, row))
        rounds = [(made, False)]
        while rounds:
            changes, snapshot = rounds.pop()
            if snapshot:
                told.clear()
            for change in places.take(changes, COLUMNS, snapshot=snapshot):
                key = (change["row"]["id"], change["row"]["room"])
                (told.add if change["diff"] > 0 else told.remove)(key)
            if places.has_room:
                rounds.append(([Change(0, w, r) for r, w in model.rows.items()], True))
                assert not snapshot
        assert told <= set(model.rows)
        assert len(told) == min(most, len(model.rows)) or places.others == 0
        assert len(told) <= most
        if len(model.rows) <= most and not places.others:
            assert told == set(model.rows)


def test_a_flood_of_rows_is_counted_not_sent(console: Any, events: Any) -> None:
    console.run(console.coordinator.execute(f"{HEARD};{QUERY}"))
    (query,) = [q for q in console.coordinator.queries() if q.origin == "user"]
    console.push(query.id, *((1, (f"b{n}", "L012", 0.1)) for n in range(1200)))
    stream = events(f"{console.address}/api/map/events")
    sent = stream.wait("layer", lambda v: v["layer"] == "positions" and v["changes"])
    assert len(sent["changes"]) == 500
    stream.wait("positions", lambda v: v["others"] == 700)
