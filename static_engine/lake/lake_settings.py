"""Settings of the lake: where its catalog and its files are."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import sqlalchemy as sa

from streamsql.errors import DeploymentError

MAX_OPTIONS = 50


class LakeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Place of the lake.

    Attributes:
        catalog: SQLAlchemy URL of the database with the lake's catalog (SQLite or PostgreSQL); it
            may be the database of Pando's own catalog. Relative paths of SQLite start from the
            folder in which the service was started.
        warehouse: Folder of the files, or `s3://bucket/prefix`.
        options: Of the store of files, as pyiceberg names them, e.g. `s3.endpoint`.
    """

    catalog: str
    warehouse: str
    options: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        if not self.catalog or not self.warehouse:
            raise DeploymentError(
                "the lake needs the settings catalog and warehouse",
                hint="write for example sqlite:///catalog.db and a folder",
            )
        if len(self.options) > MAX_OPTIONS:
            raise DeploymentError(f"the lake has more than {MAX_OPTIONS} options")

    @property
    def catalog_url(self) -> str:
        """The address, with the driver that Pando brings.

        Raises:
            DeploymentError: It is no address of SQLite or PostgreSQL.
        """
        try:
            parsed = sa.make_url(self.catalog)
        except sa.exc.ArgumentError as error:
            raise _bad_catalog() from error
        if parsed.get_backend_name() in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        elif parsed.get_backend_name() != "sqlite":
            raise _bad_catalog()
        return parsed.render_as_string(hide_password=False)

    @property
    def warehouse_url(self) -> str:
        """The folder or bucket as an address."""
        if "://" in self.warehouse:
            return self.warehouse.rstrip("/")
        return Path(self.warehouse).absolute().as_uri()


def _bad_catalog() -> DeploymentError:
    return DeploymentError(
        "the lake's catalog is no address of SQLite or PostgreSQL",
        hint="write sqlite:///path/to/file or postgresql://user:password@host/database",
    )
