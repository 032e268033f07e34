"""What `pando up` may be asked for."""

from pathlib import Path

import pytest

from deploy.local.up_options import UpOptions
from streamsql.errors import DeploymentError


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"gateways": 0}, "--gateways 0"),
        ({"gateways": 33}, "from 1 to 32"),
        ({"port": 0}, "--port 0"),
        ({"port": 65536}, "from 1 to 65535"),
        ({"speed": 0.0}, "--speed 0.0"),
        ({"speed": -1.0}, "--speed -1.0"),
        ({"speed": float("nan")}, "--speed nan"),
        ({"speed": float("inf")}, "--speed inf"),
        ({"site": Path("none.geojson")}, "--site none.geojson: there is no such file"),
        ({"replay": Path("/")}, "--replay /: there is no such file"),
        ({"calendar": "none.ics"}, "--calendar none.ics: there is no such file"),
        ({"site": Path(__file__), "replay": Path(__file__)}, "exclude each other"),
        ({"secure": True, "broker": "mqtt://elsewhere"}, "that broker has accounts of its own"),
        ({"broker_listen": "0.0.0.0:8883"}, "needs --secure"),
        ({"secure": True, "broker_listen": "10.0.0.1"}, "IP address of this machine and a port"),
        ({"secure": True, "broker_listen": "host:8883"}, "--broker-listen 'host:8883'"),
        ({"secure": True, "broker_listen": "127.0.0.1:0"}, "--broker-listen '127.0.0.1:0'"),
        ({"console_host": "127.0.0.1"}, "needs --secure"),
        ({"spark_master": "spark://host"}, "--spark-master 'spark://host' is no master"),
        ({"spark_master": "yarn", "spark": False}, "--spark-master and --no-spark"),
        ({"secure": True, "console_host": "example.org"}, "--console-host 'example.org'"),
    ],
)
def test_what_cannot_work_is_refused_with_the_option_to_change(
    changed: dict[str, object], said: str
) -> None:
    with pytest.raises(DeploymentError) as caught:
        UpOptions(**changed)  # type: ignore[arg-type]
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("given", "place"),
    [("", ("127.0.0.1", 0)), ("10.0.0.1:8883", ("10.0.0.1", 8883)), ("[::]:8883", ("::", 8883))],
)
def test_where_the_broker_listens(given: str, place: tuple[str, int]) -> None:
    assert UpOptions(secure=True, broker_listen=given).broker_place == place


def test_the_ends_of_the_ranges_and_addresses_are_taken() -> None:
    UpOptions(gateways=1, port=1, speed=0.001)
    UpOptions(gateways=32, port=65535, speed=100_000)
    UpOptions(calendar="https://example.org/rooms.ics", site=Path(__file__))
    UpOptions(calendar=__file__, replay=Path(__file__))
