"""The lake's catalog in PostgreSQL is cut off at any byte of a commit: all is kept, once."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from static_engine.lake.lake import Lake
from static_engine.lake.lake_errors import LakeError
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
from tests.static_engine.postgres_server import postgres_server

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.timeout(300),
    # The driver says so of each connection that was cut.
    pytest.mark.filterwarnings("ignore:.*Connection:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def proxied() -> Iterator[tuple[CuttingProxy, str]]:
    with postgres_server("catalog") as url:
        address = make_url(url)
        assert address.port is not None
        with cutting_proxy(address.port) as proxy:
            yield proxy, address.set(port=proxy.own_port).render_as_string(hide_password=False)


class CatalogLanding(Landing):
    """A pipeline whose lake has its catalog in PostgreSQL."""

    def __init__(self, folder: Path, catalog: str) -> None:
        self.folder = folder
        self.lake = Lake(LakeSettings(catalog, str(folder / "lake")))
        self.segments = SegmentWriter(folder / "segments", "lander", 1, 10**9)
        self.pipeline = self.opened()


@pytest.fixture
def landing(proxied: tuple[CuttingProxy, str], tmp_path: Path) -> Iterator[CatalogLanding]:
    made = CatalogLanding(tmp_path, proxied[1])
    yield made
    made.pipeline.close()
    made.lake.catalog.engine.dispose()
    gc.collect()  # connections that were cut, while their warnings are expected


def test_nothing_is_lost_or_doubled(
    proxied: tuple[CuttingProxy, str], landing: CatalogLanding
) -> None:
    proxy, _url = proxied
    landing.run(0, landing.land(birth(HEAT, SEAT), pack(0), pack(100, SEAT)))
    proxy.left = 1 << 60
    landing.run(1, landing.land(pack(1), pack(101, SEAT)))
    whole = (1 << 60) - proxy.left
    expected = [0, 0, 1, 1]
    cuts = 14
    failures = 0
    said: list[str] = []
    for number in range(2, 2 + cuts):
        segment = landing.land(pack(number), pack(number - 1), pack(100 + number, SEAT))
        expected += [number, number]
        proxy.left = whole * (number - 2) // cuts
        try:
            landing.run(number, segment)
        except SQLAlchemyError as error:
            failures += 1
            said.append(str(error))
        proxy.left = None
        if number % 2:  # the process may have ended, too
            landing.pipeline.close()
            landing.pipeline = landing.opened()
        for _ in range(3):  # a pool of connections has some that are broken
            try:
                landing.run(number, segment)
                break
            except SQLAlchemyError:
                failures += 1
        assert sorted(values(landing.lake), key=str) == sorted(expected, key=str)
        assert len(values(landing.lake, "seat")) == len(expected)
    assert failures >= cuts - 2
    assert not [text for text in said if "secret" in text]
    assert messages(landing.lake, "dead_letters") == []
    proxy.is_away = True
    with pytest.raises(LakeError, match="cannot open the lake's catalog") as away:
        Lake(landing.lake.settings)
    assert "secret" not in str(away.value)
