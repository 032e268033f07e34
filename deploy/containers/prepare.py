"""Write the site and every service's settings for `docker compose`, then end.

    python -m deploy.containers.prepare --to /srv/pando --gateways 3

The same site and settings that `pando up` makes for one machine, with the other services' names as
addresses. No password is written: services take addresses that hold one from `PANDO_BROKER` and
`PANDO_CATALOG_URL`. Running it again overwrites what it wrote; what services keep is elsewhere.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from deploy.local import configure
from deploy.local.layout import Layout
from deploy.local.up_options import UpOptions
from gateway.gateway_settings import ClockSettings
from streamsql.errors import FederationError

BROKER = "mqtt://broker:1883"
SPARK_MASTER = "spark://spark-master:7077"
CONSOLE_PORT = 8080


def prepare(options: UpOptions, state: Path) -> list[Path]:
    """Write the site below `options.data`, and settings for every service; return their files.

    `state` is where each container keeps its own data, the same path in all of them.

    Raises:
        FederationError: A file of the site is wrong, or nothing can be written.
    """
    layout = Layout(options.data)
    site = configure.read_site(options, None)
    configure.write_site(site, layout, None, options.gateways)
    clock = ClockSettings()
    gateways = [
        configure.gateway_settings(
            number,
            options=options,
            layout=layout,
            broker=BROKER,
            recording=None,
            clock=clock,
        )
        for number in range(1, options.gateways + 1)
    ]
    settings: dict[str, object] = {
        "console": console_settings(layout, state),
        "static": static_settings(layout, state),
    }
    for gateway in (configure.base_settings(layout, BROKER, clock), *gateways):
        settings[gateway.gateway] = msgspec.structs.replace(gateway, data_dir=str(state))
    return [configure.write_settings(layout, name, value) for name, value in settings.items()]


def console_settings(layout: Layout, state: Path) -> dict[str, Any]:
    """Return the settings of coordinator and console."""
    return {
        "host": "0.0.0.0",  # noqa: S104 - inside its container; compose publishes on loopback only
        "port": CONSOLE_PORT,
        "site": configure.FEDERATION,
        "broker": BROKER,
        "data_dir": str(state),
        "site_file": str(layout.site / "site.geojson"),
        "schema_file": str(layout.schema),
        "layers": "building",
        # Both containers have the volume at the same place: what the static engine would refuse to
        # open is refused when it is defined.
        "base_dir": str(layout.tables),
    }


def static_settings(layout: Layout, state: Path) -> dict[str, Any]:
    """Return the settings of the static engine."""
    return {
        "broker": BROKER,
        "site": configure.FEDERATION,
        "data_dir": str(state),
        "base_dir": str(layout.tables),
        "spark_master": SPARK_MASTER,
        "class_data_archive": False,
    }


def main() -> int:
    """Return 0 when everything is written, 2 when the operator must change something."""
    parser = argparse.ArgumentParser(prog="python -m deploy.containers.prepare")
    parser.add_argument("--to", required=True, type=Path, help="folder that all services can read")
    parser.add_argument("--state", default=Path("/var/lib/pando"), type=Path)
    parser.add_argument("--gateways", default=3, type=int)
    parser.add_argument("--site", type=Path, help="OSM indoor GeoJSON; else the sample building")
    given = parser.parse_args()
    try:
        options = UpOptions(site=given.site, gateways=given.gateways, data=given.to)
        for path in prepare(options, given.state):
            print(f"wrote {path}")  # noqa: T201
    except FederationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
