"""IMDF, the Indoor Mapping Data Format: an archive (a zip file or its folder) of GeoJSON files.

One row per feature of the chosen layer (`unit`, `level`, `opening`, …): the columns of GeoJSON, the
feature's properties, and `feature_type`. A text in several languages ({"en": "Hall"}) is the one in
the archive's language (`manifest.json`), else English, else the first.
"""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

from static_engine.sources.documents.geo_rows import OWN, features_in
from static_engine.sources.documents.offered_rows import (
    MAX_BYTES,
    batches_of,
    content_of,
    too_large,
    where_of,
)
from static_engine.sources.table_errors import TableError, TableMissingError
from streamsql.catalog.definitions import SourceDefinition

MAX_ENTRIES = 200
_MANIFEST = "manifest.json"
_TRANSLATED = ("name", "alt_name", "hours", "description")
_COMMON = (*OWN, "feature_type")


def read_imdf(definition: SourceDefinition, archive: Path, layer: str) -> Iterator[pa.RecordBatch]:
    """Yield the features of a layer of an archive in the declared types.

    Raises:
        TableMissingError: The archive has no such layer.
        TableError: It is no archive, too large, or lacks a column.
    """
    member = f"{layer}.geojson"
    where = where_of(definition, f"{archive.name}/{member}")
    contents = _of_folder if archive.is_dir() else _of_zip
    found = contents(definition, archive, (member, _MANIFEST))
    if member not in found:
        raise TableMissingError(
            f"{where} is missing",
            hint="the option layer is the name of a file of the archive: unit, level, opening, …",
        )
    rows = features_in(found[member], where)
    language = _language(found.get(_MANIFEST, b"{}"))
    for row in rows:
        row.setdefault("feature_type", layer)
        for name in _TRANSLATED:
            row[name] = _translated(row.get(name), language)
    offered = [*_COMMON, *_TRANSLATED, *(name for row in rows for name in row)]
    yield from batches_of(definition, rows, offered, f"{archive.name}/{member}")


def _of_folder(
    definition: SourceDefinition, folder: Path, members: tuple[str, ...]
) -> dict[str, bytes]:
    real = folder.resolve()
    found = {}
    for name in members:
        file = real / name
        if not file.is_file():
            continue
        if file.resolve().parent != real:
            raise TableError(f"{where_of(definition, name)} is a link out of its folder")
        found[name] = content_of(definition, file)
    return found


def _of_zip(
    definition: SourceDefinition, archive: Path, members: tuple[str, ...]
) -> dict[str, bytes]:
    where = where_of(definition, archive.name)
    found: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = opened.infolist()
            if len(entries) > MAX_ENTRIES:
                raise TableError(f"{where} has more than {MAX_ENTRIES} entries")
            for entry in entries:
                name = entry.filename.rpartition("/")[2]
                if name not in members:
                    continue
                if name in found:
                    raise TableError(f"{where} has {name} twice")
                # The size that an entry states may be a lie: what counts is what comes out.
                with opened.open(entry) as content:
                    found[name] = content.read(MAX_BYTES + 1)
                if len(found[name]) > MAX_BYTES:
                    raise too_large(f"{where}/{name}", MAX_BYTES)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise TableError(
            f"{where} is not a zip file that can be read: {error}",
            hint="unpack it into a folder and name that",
        ) from error
    except OSError as error:
        raise TableError(f"{where} cannot be read: {error.strerror or error}") from error
    return found


def _language(manifest: bytes) -> str:
    try:
        return msgspec.json.decode(manifest, type=_Manifest).language
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""  # only a preference: the texts are there without it


class _Manifest(msgspec.Struct):
    language: str = ""


def _translated(value: object, language: str) -> object:
    if not isinstance(value, dict) or not value:
        return value
    for wanted in (language, language.partition("-")[0], "en"):
        if wanted in value:
            return value[wanted]
    return next(iter(value.values()))
