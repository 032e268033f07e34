"""Settings of the console: one JSON file, read once at the start."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from streamsql.errors import DeploymentError


class ConsoleSettings(msgspec.Struct, frozen=True):
    """Everything the console process needs to know.

    Attributes:
        host: Address to listen on.
        port: TCP port.
        site: The federation, first level of every topic.
        broker: mqtt://[user:password@]host:port
        data_dir: For the catalog (unless `catalog_url` is given) and the epoch.
        catalog_url: SQLAlchemy URL; empty is SQLite in the data directory.
        site_file: The map as GeoJSON; empty for none.
        schema_file: CREATE statements that are applied when their names are unknown; or empty.
        layers: "building" or "trace": which of the map's standing queries to install.
        grace_seconds: How long an offline site's rows stay.
        functions: Python modules with functions of the user that may run here, with commas.
        time_zone: Of the times of day of REFRESH AT, by its IANA name such as Europe/Berlin.
    """

    broker: str
    data_dir: str
    host: str = "127.0.0.1"
    port: int = 8420
    site: str = "demo"
    catalog_url: str = ""
    site_file: str = ""
    schema_file: str = ""
    layers: str = "building"
    grace_seconds: float = 5.0
    functions: str = ""
    time_zone: str = "UTC"


_VARIABLES = {
    "PANDO_BROKER": "broker",
    "PANDO_SITE": "site",
    "PANDO_DATA": "data_dir",
    "PANDO_CATALOG_URL": "catalog_url",
    "PANDO_HOST": "host",
    "PANDO_FUNCTIONS": "functions",
    "PANDO_TIME_ZONE": "time_zone",
}


def load_settings(path: Path, environ: Mapping[str, str] = os.environ) -> ConsoleSettings:
    """Read settings from a JSON file; PANDO_BROKER, PANDO_CATALOG_URL, … override it.

    Raises:
        DeploymentError: The file is missing or wrong; says where.
    """
    try:
        settings = msgspec.json.decode(path.read_bytes(), type=ConsoleSettings)
    except OSError as error:
        raise DeploymentError(
            f"cannot read settings {path}: {error.strerror}",
            hint="give --config the path of the console's JSON settings",
        ) from error
    except msgspec.MsgspecError as error:
        raise DeploymentError(f"settings {path}: {error}") from error
    changes = {field: environ[name] for name, field in _VARIABLES.items() if environ.get(name)}
    return msgspec.structs.replace(settings, **changes) if changes else settings
