"""Tables by URL, in a store on loopback that speaks S3."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from static_engine.sources import object_stores
from static_engine.sources.object_stores import StoreSettings
from static_engine.sources.table_addresses import TableAddresses
from static_engine.sources.table_errors import TableError, TableMissingError
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_reader import read_table
from streamsql.data.types import Row
from streamsql.errors import DeploymentError
from tests.static_engine.sources.documents.document_tables import table

COLUMNS = "id INTEGER, name TEXT"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    store = fs.S3FileSystem(
        access_key="a", secret_key="b", endpoint_override=address, allow_bucket_creation=True
    )
    store.create_dir("shop")
    contents = {
        "shop/in/a.csv": b"name,id\nx,1\n",
        "shop/in/b.csv": b"id,name\n2,y\n",
        "shop/in/readme.txt": b"?",
        "shop/rows.jsonl": b'{"id": 3, "name": "z"}\n',
        "shop/secret/t.csv": b"id,name\n9,hidden\n",
        "shop/hall.geojson": json.dumps(
            {"type": "Feature", "id": "h", "properties": {"id": 5, "name": "hall"}}
        ).encode(),
    }
    for key, content in contents.items():
        with store.open_output_stream(key) as file:
            file.write(content)
    with store.open_output_stream("shop/t.parquet") as file:
        pq.write_table(pa.table({"id": [4], "name": ["p"]}), file)
    yield address
    server.stop()


def read(folder: Path, store: StoreSettings, environ: dict[str, str], **options: str) -> list[Row]:
    found: list[Row] = []
    secrets = TableAddresses(environ=environ)
    locations = Locations(folder, secrets=secrets, stores=(store,))
    for batch in read_table(table(COLUMNS, **options), locations):
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def store_at(endpoint: str, address: str = "s3://shop") -> StoreSettings:
    return StoreSettings(address, endpoint, "us-east-1", "a", "secret:shop_key")


KEY = {"PANDO_SECRET_SHOP_KEY": "b"}


@pytest.mark.parametrize(
    ("source", "path", "expected"),
    [
        ("csv", "s3://shop/in/a.csv", [(1, "x")]),
        ("csv", "s3://shop/in", [(1, "x"), (2, "y")]),
        ("csv", "s3://shop/in/", [(1, "x"), (2, "y")]),
        ("json", "s3://shop/rows.jsonl", [(3, "z")]),
        ("parquet", "s3://shop/t.parquet", [(4, "p")]),
        ("geojson", "s3://shop/hall.geojson", [(5, "hall")]),
    ],
)
def test_objects_are_read_as_files(
    source: str, path: str, expected: list[Row], endpoint: str, tmp_path: Path
) -> None:
    assert read(tmp_path, store_at(endpoint), KEY, source=source, path=path) == expected


@pytest.mark.parametrize(
    "path",
    [
        "s3://shop/secret/t.csv",
        "s3://shop/in/../secret/t.csv",
        "s3://shop/inside",
        "s3://other/a.csv",
    ],
)
def test_only_what_is_below_the_address_is_read(path: str, endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="outside the stores") as refusal:
        read(tmp_path, store_at(endpoint, "s3://shop/in"), KEY, source="csv", path=path)
    assert refusal.value.code == "outside_folders"


def test_what_is_missing_or_wrong_is_said(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_at(endpoint)
    with pytest.raises(TableMissingError, match=r"no object \.csv"):
        read(tmp_path, store, KEY, source="csv", path="s3://shop/none.csv")
    with pytest.raises(TableError, match="there is no secret"):
        read(tmp_path, store, {}, source="csv", path="s3://shop/in")
    with pytest.raises(TableError, match="the store does not give it"):
        read(tmp_path, store_at("http://127.0.0.1:9"), KEY, source="csv", path="s3://shop/in")
    with pytest.raises(TableError, match="read from folders"):
        read(tmp_path, store, KEY, source="delta", path="s3://shop/in")
    monkeypatch.setattr(object_stores, "MAX_BYTES", 5)
    with pytest.raises(TableError, match="holds more than"):
        read(tmp_path, store, KEY, source="csv", path="s3://shop/in")


def test_a_malformed_address_is_refused() -> None:
    for address in ("shop", "s3://", "s3:///x", "http://shop"):
        with pytest.raises(DeploymentError, match="table_stores"):
            StoreSettings(address)
