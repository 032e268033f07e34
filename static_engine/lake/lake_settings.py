"""Settings of the lake: where its catalog and its files are."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import sqlalchemy as sa

from streamsql.catalog.keep_options import keep_of, rollups_of
from streamsql.errors import DeploymentError

CATALOG_VARIABLE = "PANDO_LAKE_CATALOG"
MAX_OPTIONS = 50
LEAST_PAUSE = 1.0
LONGEST_PAUSE = 86_400.0


class LakeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Place of the lake.

    Attributes:
        catalog: SQLAlchemy URL of the database with the lake's catalog (SQLite or PostgreSQL); it
            may be the database of Pando's own catalog. `PANDO_LAKE_CATALOG` overrides it. Relative
            paths of SQLite start from the folder in which the service was started.
        warehouse: Folder of the files, or `s3://bucket/prefix`.
        options: Of the store of files, as pyiceberg names them, e.g. `s3.endpoint`.
        keep: How long readings of sources are kept whose option `keep` is not given.
        keep_system: How long messages of the namespace `system` are kept, by their arrival.
        rollup: The roll-ups of sources whose option `rollup` is not given.
        care_seconds: Between two times that care looks what is due; 0: only what is asked is done.
        exports: Folder of files that exports write; empty: `exports` in the static engine's folder.
    """

    catalog: str
    warehouse: str
    options: Mapping[str, str] = {}
    keep: str = "forever"
    keep_system: str = "30 days"
    rollup: str = "no"
    care_seconds: float = 600.0
    exports: str = ""

    def __post_init__(self) -> None:
        if not self.catalog or not self.warehouse:
            raise DeploymentError(
                "the lake needs the settings catalog and warehouse",
                hint="write for example sqlite:///catalog.db and a folder",
            )
        if len(self.options) > MAX_OPTIONS:
            raise DeploymentError(f"the lake has more than {MAX_OPTIONS} options")
        self._check_care()

    def _check_care(self) -> None:
        try:
            kept, _ = keep_of(self.keep)
            kept_messages, _ = keep_of(self.keep_system)
            rollups_of(self.rollup)
        except ValueError as error:
            raise _bad_care(str(error)) from error
        if not (kept and kept_messages):
            raise _bad_care("a lake that keeps nothing is none")
        if self.care_seconds and not LEAST_PAUSE <= self.care_seconds <= LONGEST_PAUSE:
            raise DeploymentError(
                f"setting care_seconds of the lake is {self.care_seconds}; it must be 0, or between"
                f" {LEAST_PAUSE:g} and {LONGEST_PAUSE:g}"
            )

    @property
    def catalog_url(self) -> str:
        """The address, with the driver that Pando brings.

        Raises:
            DeploymentError: It is no address of SQLite or PostgreSQL.
        """
        # An address with a password stands in no file that several services read.
        address = os.environ.get(CATALOG_VARIABLE) or self.catalog
        try:
            parsed = sa.make_url(address)
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


def _bad_care(problem: str) -> DeploymentError:
    return DeploymentError(
        f"setting keep, keep_system or rollup of the lake: {problem}",
        hint="keep = 'forever' or '30 days'; rollup = 'no' or '1 min, 1 h'",
    )
