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
    ],
)
def test_what_cannot_work_is_refused_with_the_option_to_change(
    changed: dict[str, object], said: str
) -> None:
    with pytest.raises(DeploymentError) as caught:
        UpOptions(**changed)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_the_ends_of_the_ranges_and_addresses_are_taken() -> None:
    UpOptions(gateways=1, port=1, speed=0.001)
    UpOptions(gateways=32, port=65535, speed=100_000)
    UpOptions(calendar="https://example.org/rooms.ics", site=Path(__file__))
    UpOptions(calendar=__file__, replay=Path(__file__))
