"""The tables of positions: which are missing, and the statements that create them."""

import httpx

from tests.streamsql.from_text import bound_query, catalog_of
from ui.map.calibration import POINTS
from ui.map.calibration_tables import TABLES, create_script, missing_tables


def test_the_library_views_bind_over_what_is_created() -> None:
    heard = (
        "CREATE SOURCE heard (badge TEXT, receiver TEXT, rssi DOUBLE, ts TIMESTAMP) "
        "WITH (ttl = '1 min')"
    )
    catalog = catalog_of(heard, create_script(TABLES), library=True)
    for name in ("strongest_room", "weighted_centroid", "radio_map_position"):
        assert "room" in bound_query(f"SELECT * FROM {name}", catalog).schema.names
    assert bound_query(POINTS, catalog).schema.names[-1] == "receivers"
    assert missing_tables(catalog.names) == ()
    assert missing_tables(["Receiver", "x"]) == ("calibration_point", "radio_map")


def test_the_console_says_what_is_missing(client: httpx.Client) -> None:
    found = client.get("/api/calibration/tables").json()
    assert found == {"missing": list(TABLES)}
    created = client.post("/api/calibration/tables", json={}).json()
    assert created == {"created": list(TABLES)}
