"""The tables of positions: their files, their statements, and folders that cannot be written."""

from pathlib import Path

import httpx
import pytest

from streamsql.catalog.open_folders import OpenFolders
from streamsql.errors import DeploymentError
from tests.streamsql.from_text import bound_query, catalog_of
from ui.map.calibration import POINTS
from ui.map.calibration_tables import TABLES, create_script, make_files, missing_tables


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


def test_files_are_made_once_with_their_columns(tmp_path: Path) -> None:
    folders = OpenFolders(str(tmp_path / "tables"))
    kept = tmp_path / "tables" / "receiver.csv"
    kept.parent.mkdir()
    kept.write_text("receiver,room,floor,x,y\nr1,hall,0,1,2\n")
    assert make_files(TABLES, folders) == tmp_path / "tables"
    assert kept.read_text().endswith("r1,hall,0,1,2\n")
    assert (kept.parent / "radio_map.csv").read_text() == "point,receiver,rssi\n"
    assert (kept.parent / "calibration_point.csv").read_text() == "point,room,floor,x,y\n"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="does not know the folder"):
        make_files(TABLES, None)
    (tmp_path / "file").touch()
    with pytest.raises(DeploymentError, match=r"cannot be written in .*file"):
        make_files(TABLES, OpenFolders(str(tmp_path / "file")))


def test_the_console_says_what_is_missing(client: httpx.Client) -> None:
    found = client.get("/api/calibration/tables").json()
    assert found == {"missing": list(TABLES)}
    refused = client.post("/api/calibration/tables", json={})
    assert "does not know the folder" in refused.json()["error"]["message"]
