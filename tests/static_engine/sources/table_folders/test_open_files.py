"""Addresses in the metadata of tables are names of files as they are on the disk."""

from pathlib import Path

import pytest

from static_engine.sources.table_errors import TableError
from static_engine.sources.table_folders.open_files import open_file
from static_engine.sources.table_locations import Locations


@pytest.mark.parametrize("start", ["", "file:", "file://", "file://localhost"])
@pytest.mark.parametrize("name", ["a.parquet", "n=%C3%A9 #1?/a.parquet", "n=a:b/a.parquet"])
def test_a_name_is_not_decoded(tmp_path: Path, start: str, name: str) -> None:
    assert open_file(f"{start}{tmp_path}/{name}", Locations(tmp_path)) == tmp_path / name


def test_a_link_with_a_percent_sign_leads_no_further(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "n=%61").symlink_to(tmp_path)
    with pytest.raises(TableError, match="outside the folders that are open"):
        open_file(f"file://{folder}/n=%61/a.parquet", Locations(folder))


@pytest.mark.parametrize("address", ["s3://b/k", "http://h/x", "file://elsewhere/x", "hdfs:/x"])
def test_other_places_are_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(TableError, match="not a local file"):
        open_file(address, Locations(tmp_path))
