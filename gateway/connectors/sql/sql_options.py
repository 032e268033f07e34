"""Options of the connector sql."""

from enum import StrEnum

import msgspec

from gateway.connectors.options import Seconds
from streamsql.errors import DeploymentError

MAX_QUERY = 20_000


class Start(StrEnum):
    """Which rows a source begins with when it is read for the first time."""

    ALL = "all"
    NEW = "new"


class SqlEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which database.

    Attributes:
        url: As SQLAlchemy takes it: sqlite:////var/lib/meters.db, postgresql+psycopg://me@db/plant.
        password: Of the user in the url; may be in the url instead.
        timeout: Of a connection, and of a query.
    """

    url: str
    password: str = ""
    timeout: Seconds = Seconds(30)

    def __post_init__(self) -> None:
        _require("://" in self.url, "url: write sqlite:////path/to/file or postgresql+psycopg://…")
        _require(0.1 <= self.timeout <= 3_600, "timeout: between 0.1 s and 1 h")


class SqlSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which rows.

    Attributes:
        watermark: The column that grows from row to row: a serial number, or the time at which a
            row was written. Rows in which it is NULL are not read.
        table: Name of a table or view, with its schema if it has one: 'plant.meter'.
        query: A SELECT, instead of a table.
        interval: From one poll to the next.
        start: What is read when the source is new: all rows, or those that come from then on.
    """

    watermark: str
    table: str = ""
    query: str = ""
    interval: Seconds = Seconds(10)
    start: Start = Start.ALL

    def __post_init__(self) -> None:
        _require(bool(self.table) != bool(self.query), "write either table or query")
        _require(bool(self.watermark), "watermark: name the column that grows from row to row")
        _require(len(self.query) <= MAX_QUERY, f"query: at most {MAX_QUERY:,} characters")
        _require(self.interval >= 0.1, "interval: at least 0.1 s between polls")

    @property
    def fingerprint(self) -> str:
        """Identity of the table or query that a watermark is of; it is void for another."""
        return f"{self.watermark} of {self.table or self.query}"


def _require(is_right: bool, text: str) -> None:
    if not is_right:
        raise DeploymentError(text)
