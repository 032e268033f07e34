"""Tables by URL in stores that speak S3: their objects are fetched, and then read as files.

Only stores that the operator names are asked, and of them only what begins with their address.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import msgspec
import pyarrow as pa
from pyarrow import fs

from static_engine.sources.table_addresses import TableAddresses
from static_engine.sources.table_errors import TableError, TableMissingError
from streamsql.errors import DeploymentError

SCHEME = "s3://"
MAX_BYTES = 4 << 30
"""Of all objects of a table together."""
MAX_OBJECTS = 10_000
_CONNECT_SECONDS = 5
_REQUEST_SECONDS = 30
_CHUNK_BYTES = 4 << 20


class StoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One store that tables may name.

    Attributes:
        address: `s3://bucket` or `s3://bucket/prefix`: tables may name what is below.
        endpoint: `https://host:port` of a store other than Amazon's; empty: that.
        region: Of the bucket.
        access_key: Or `secret:NAME`; empty with `secret_key`: requests are anonymous.
        secret_key: Or `secret:NAME`.
    """

    address: str
    endpoint: str = ""
    region: str = "us-east-1"
    access_key: str = ""
    secret_key: str = ""

    def __post_init__(self) -> None:
        bucket = self.address.removeprefix(SCHEME).partition("/")[0]
        if not self.address.startswith(SCHEME) or not bucket:
            raise DeploymentError(
                f"setting table_stores has the address {self.address!r:.200}",
                hint="write s3://bucket or s3://bucket/prefix",
            )

    def holds(self, path: str) -> bool:
        """Whether a path is below the address."""
        own = self.address.rstrip("/")
        return path == own or path.startswith(own + "/")


def is_stored(path: str) -> bool:
    """Whether a table's path is a URL of a store."""
    return path.startswith(SCHEME)


@contextmanager
def fetched(
    path: str,
    suffixes: tuple[str, ...],
    stores: tuple[StoreSettings, ...],
    secrets: TableAddresses,
) -> Iterator[tuple[Path, ...]]:
    """Fetch an object, or those below a path with one of the suffixes, for as long as it is used.

    Args:
        path: `s3://bucket/key`, or a prefix of keys.
        suffixes: Of the names of objects below a prefix.
        stores: That the operator names.
        secrets: Where names of secrets are looked up.

    Raises:
        TableMissingError: There is none.
        TableError: The store is not open to tables, does not answer, or the table is too large.
    """
    store = next((each for each in stores if each.holds(path)), None)
    if store is None or ".." in path.split("/"):
        opened = ", ".join(each.address for each in stores) or "none"
        raise TableError(
            f"path {path!r:.200} is outside the stores that are open to tables: {opened}",
            hint="ask the operator to open it (setting table_stores)",
            code="outside_folders",
        )
    try:
        system = _system(store, secrets)
        found = _objects(system, path, suffixes)
        with tempfile.TemporaryDirectory(prefix="pando-table-") as folder:
            yield tuple(_fetch(system, info, Path(folder)) for info in found)
    except (OSError, pa.ArrowException) as error:
        what = " ".join(str(error).split())
        raise TableError(
            f"path {path!r:.200}: the store does not give it: {what:.300}",
            hint="look at the setting table_stores: endpoint, region and keys",
        ) from error


def _system(store: StoreSettings, secrets: TableAddresses) -> fs.S3FileSystem:
    access, secret = secrets.address(store.access_key), secrets.address(store.secret_key)
    return fs.S3FileSystem(
        access_key=access or None,
        secret_key=secret or None,
        anonymous=not access and not secret,
        region=store.region,
        endpoint_override=store.endpoint or None,
        scheme="http" if store.endpoint.startswith("http://") else "https",
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=2),
    )


def _objects(system: fs.S3FileSystem, path: str, suffixes: tuple[str, ...]) -> list[fs.FileInfo]:
    key = path.removeprefix(SCHEME).rstrip("/")
    info = system.get_file_info(key)
    if info.type == fs.FileType.File:
        found = [info]
    else:
        below = fs.FileSelector(key, allow_not_found=True)
        found = sorted(
            (
                each
                for each in system.get_file_info(below)
                if each.type == fs.FileType.File and PurePosixPath(each.path).suffix in suffixes
            ),
            key=lambda each: str(each.path),
        )
    if not found:
        raise TableMissingError(f"path {path!r:.200} has no object {' or '.join(suffixes)}")
    if len(found) > MAX_OBJECTS:
        raise TableError(f"path {path!r:.200} has more than {MAX_OBJECTS} objects")
    if sum(each.size or 0 for each in found) > MAX_BYTES:
        raise TableError(
            f"path {path!r:.200} holds more than {MAX_BYTES >> 20} MB",
            hint="split it into several tables",
        )
    return found


def _fetch(system: fs.S3FileSystem, info: fs.FileInfo, folder: Path) -> Path:
    name = PurePosixPath(info.path).name
    target = folder / name
    with system.open_input_stream(info.path) as source, target.open("xb") as copy:
        shutil.copyfileobj(source, copy, _CHUNK_BYTES)
    return target
