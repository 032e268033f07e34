"""Write the site and every service's settings for `docker compose`, then end.

    python -m deploy.containers.prepare --to /srv/pando --gateways 3

The same site and settings that `pando up` makes for one machine, with the other services' names as
addresses. No password is written: services take addresses that hold one from `PANDO_BROKER`,
`PANDO_CATALOG_URL` and `PANDO_LAKE_CATALOG`. The federation's certificate authority and the
broker's certificate are made too, in folders of their own. Running it again overwrites what it
wrote, but for the authority, and the broker's certificate as long as it is not to be renewed; what
services keep is elsewhere.
"""

import argparse
import datetime as dt
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from building.files.site_files import write_atomically
from deploy.local import configure
from deploy.local.layout import Layout
from deploy.local.up_options import UpOptions
from gateway.gateway_settings import ClockSettings
from host.certificates.certificate_files import ensure_server_certificate, open_or_make_authority
from streamsql.errors import DeploymentError, FederationError

BROKER = "mqtts://broker:8883"
BROKER_NAMES = ("broker", "localhost", "127.0.0.1")
"""Names in the broker's certificate; `PANDO_BROKER_NAMES` adds those that others know it by."""
SPARK_MASTER = "spark://spark-master:7077"
CONSOLE_PORT = 8080
LAKE = {"catalog": "postgresql://postgres:5432/pando_catalog", "warehouse": "/srv/lake"}
"""The lake, at the same place in all containers; `PANDO_LAKE_CATALOG` has the address with the
password."""
SEGMENTS = "segments"
"""Folder of what the lander has written, below the state of the static engine."""
FIGURES: dict[str, Any] = {"metrics_port": 9464, "metrics_host": "0.0.0.0"}  # noqa: S104 - not published
"""Where every container serves `/metrics` and `/health` to the others."""


def prepare(options: UpOptions, state: Path, authority: Path) -> list[Path]:
    """Write the site below `options.data`, and settings for every service; return their files.

    `state` is where each container keeps its own data, the same path in all of them; `authority`
    is the folder of the federation's certificate authority.

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
        "console": console_settings(layout, state, authority),
        "static": static_settings(layout, state),
        "lander": lander_settings(layout, state),
    }
    for gateway in (configure.base_settings(layout, BROKER, clock), *gateways):
        settings[gateway.gateway] = msgspec.structs.replace(
            gateway,
            data_dir=str(state),
            broker_ca=str(authority_file(layout)),
            **FIGURES,
        )
    return [configure.write_settings(layout, name, value) for name, value in settings.items()]


def authority_file(layout: Layout) -> Path:
    """Return where every service finds the certificate of the authority."""
    return layout.settings("ca").with_name("ca.crt")


def make_certificates(layout: Layout, authority: Path, broker: Path, names: str) -> list[Path]:
    """Make the authority and the broker's certificate, where they are missing; return the files.

    Args:
        layout: Where the authority's certificate is put for all to read.
        authority: Folder of the authority, for its owner only.
        broker: Folder of the broker's certificate and key, as `broker.crt` and `broker.key`.
        names: More host names and addresses of the broker, with commas.

    Raises:
        DeploymentError: What is there is damaged or over, or a name is no host name.
    """
    now = dt.datetime.now(dt.UTC)
    more = tuple(name.strip() for name in names.split(",") if name.strip())
    try:
        signer = open_or_make_authority(authority, f"Pando {configure.FEDERATION}", now)
        wanted = tuple(dict.fromkeys((*BROKER_NAMES, *more)))
        made = ensure_server_certificate(signer, broker, "broker", wanted, now)
    except OSError as error:
        raise DeploymentError(f"cannot write {error.filename}: {error.strerror}") from error
    shown = authority_file(layout)
    write_atomically(shown, signer.certificate)
    return [shown, made.certificate, made.key]


def console_settings(layout: Layout, state: Path, authority: Path) -> dict[str, Any]:
    """Return the settings of coordinator and console, which signs for gateways that join."""
    return {
        **FIGURES,
        "host": "0.0.0.0",  # noqa: S104 - inside its container; compose publishes on loopback only
        # Docker's networks, from which published ports are forwarded. Compose publishes the port
        # on the host's loopback address: a proxy there brings people from elsewhere over TLS. Not
        # 192.168.0.0/16, which Docker takes last: people at home are in it, and who is in a
        # trusted network may say to come from any address.
        "trusted_proxy": "172.16.0.0/12",
        "port": CONSOLE_PORT,
        "site": configure.FEDERATION,
        "broker": BROKER,
        "broker_ca": str(authority_file(layout)),
        "data_dir": str(state),
        "base_sites": ["base"],
        "authority": str(authority),
        "site_file": str(layout.site / "site.geojson"),
        "schema_file": str(layout.schema),
        "layers": "building",
        # Both containers have the volume at the same place: what the static engine would refuse to
        # open is refused when it is defined.
        "base_dir": str(layout.tables),
        "lake": LAKE,
    }


def static_settings(layout: Layout, state: Path) -> dict[str, Any]:
    """Return the settings of the static engine."""
    return {
        **FIGURES,
        "broker": BROKER,
        "broker_ca": str(authority_file(layout)),
        "site": configure.FEDERATION,
        "data_dir": str(state),
        "base_dir": str(layout.tables),
        "spark_master": SPARK_MASTER,
        "class_data_archive": False,
        "segments": str(state / SEGMENTS),
        "lake": LAKE,
    }


def lander_settings(layout: Layout, state: Path) -> dict[str, Any]:
    """Return the settings of the lander, which shares a volume with the static engine."""
    return {
        **FIGURES,
        "broker": BROKER,
        "broker_ca": str(authority_file(layout)),
        "site": configure.FEDERATION,
        "data_dir": str(state / "lander"),
        "segments": str(state / SEGMENTS),
    }


def main() -> int:
    """Return 0 when everything is written, 2 when the operator must change something."""
    parser = argparse.ArgumentParser(prog="python -m deploy.containers.prepare")
    parser.add_argument("--to", required=True, type=Path, help="folder that all services can read")
    parser.add_argument("--state", default=Path("/var/lib/pando"), type=Path)
    parser.add_argument("--gateways", default=3, type=int)
    parser.add_argument("--site", type=Path, help="OSM indoor GeoJSON; else the sample building")
    parser.add_argument("--authority", default=Path("/srv/authority"), type=Path)
    parser.add_argument("--broker", default=Path("/srv/broker"), type=Path)
    given = parser.parse_args()
    try:
        options = UpOptions(site=given.site, gateways=given.gateways, data=given.to)
        written = prepare(options, given.state, given.authority)
        written += make_certificates(
            *(Layout(given.to), given.authority, given.broker),
            os.environ.get("PANDO_BROKER_NAMES", ""),
        )
        for path in written:
            print(f"wrote {path}")  # noqa: T201
    except FederationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
