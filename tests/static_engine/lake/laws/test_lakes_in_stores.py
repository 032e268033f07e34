"""A lake whose files are in a store that speaks S3: kept, read, put together, expired, cut off."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from static_engine.care.compaction import compact
from static_engine.care.expiry import expire, named_files
from static_engine.care.workers import LocalWorkers
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from static_engine.landing.segment_files import SegmentWriter
from tests.static_engine.cutting_proxy import CuttingProxy, cutting_proxy
from tests.static_engine.pipeline.test_pipeline_batches import (
    HEAT,
    SEAT,
    Landing,
    birth,
    messages,
    pack,
    values,
)


@pytest.fixture(scope="module")
def server() -> Iterator[CuttingProxy]:
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    with cutting_proxy(moto.get_host_and_port()[1]) as proxy:
        yield proxy
    moto.stop()


def address(server: CuttingProxy) -> str:
    return f"http://127.0.0.1:{server.own_port}"


def listing(server: CuttingProxy, bucket: str) -> set[str]:
    store = fs.S3FileSystem(access_key="a", secret_key="b", endpoint_override=address(server))
    infos = store.get_file_info(fs.FileSelector(bucket, recursive=True))
    return {info.path for info in infos if info.type == fs.FileType.File}


class StoredLanding(Landing):
    """A pipeline whose lake is in a bucket of its own."""

    def __init__(self, folder: Path, server: CuttingProxy, bucket: str) -> None:
        store = fs.S3FileSystem(
            access_key="a",
            secret_key="b",
            endpoint_override=address(server),
            allow_bucket_creation=True,
        )
        store.create_dir(bucket)
        options = {
            "s3.endpoint": address(server),
            "s3.access-key-id": "a",
            "s3.secret-access-key": "b",
            "s3.region": "us-east-1",
            "s3.connect-timeout": "2",
            "s3.request-timeout": "2",
        }
        self.folder = folder
        self.lake = Lake(
            LakeSettings(f"sqlite:///{folder / 'catalog.db'}", f"s3://{bucket}/lake", options)
        )
        self.segments = SegmentWriter(folder / "segments", "lander", 1, 10**9)
        self.pipeline = self.opened()


def test_what_is_kept_there_is_read_put_together_and_expired(
    server: CuttingProxy, tmp_path: Path
) -> None:
    landing = StoredLanding(tmp_path, server, "whole")
    landing.run(0, landing.land(birth(HEAT), pack(0)))
    for number in range(1, 4):
        landing.run(number, landing.land(pack(number), pack(number - 1)))
    kept = [0, 0, 1, 1, 2, 2, 3, 3]
    assert values(landing.lake) == kept
    table = landing.lake.table("heat")
    orphan = f"{table.location()}/data/day=2026-01-01/orphan.parquet"
    with table.io.new_output(orphan).create() as output:
        output.write(b"never named")
    done = compact(table, LocalWorkers(), lambda _done, _total: True, 2)
    assert (done.files_before, done.files_after) == (8, 2)
    assert values(landing.lake) == kept
    before = listing(server, "whole")
    now = datetime.now(UTC)
    assert expire(table, now, lambda _done, _total: True).files == 0  # all of it is young
    expired = expire(table, now + timedelta(days=3), lambda _done, _total: True)
    after = {path for path in listing(server, "whole") if path.startswith("whole/lake/readings/")}
    assert expired.files > 15
    assert len(before - after) >= expired.files
    assert not [path for path in after if "orphan" in path]
    assert after == named_files(landing.lake.table("heat"))
    assert len([path for path in after if path.endswith(".parquet")]) == 2
    assert values(landing.lake) == kept
    assert landing.run(4, landing.land(pack(3), pack(4))).repeated == 1
    assert values(landing.lake) == [*kept, 4, 4]


def test_a_store_that_goes_away_at_any_byte_of_a_batch_loses_and_doubles_nothing(
    server: CuttingProxy, tmp_path: Path
) -> None:
    landing = StoredLanding(tmp_path, server, "cut")
    landing.run(0, landing.land(birth(HEAT, SEAT), pack(0), pack(100, SEAT)))
    expected = [0, 0]
    for number, left in enumerate((0, 20_000), 1):
        segment = landing.land(pack(number), pack(number - 1), pack(100 + number, SEAT))
        expected += [number, number]
        server.left = left
        began = time.monotonic()
        with pytest.raises(OSError, match=r"AWS Error|lake/"):
            landing.run(number, segment)
        assert time.monotonic() - began < 30
        server.left = None
        if number % 2:  # the process may have ended, too
            landing.pipeline.close()
            landing.pipeline = landing.opened()
        landing.run(number, segment)
        assert values(landing.lake) == expected
    assert len(values(landing.lake, "seat")) == 6
    assert messages(landing.lake, "dead_letters") == []
