"""Definitions of sources, also former ones: by them packs of the past are read.

They come from births of gateways and from orders of the catalog, and are kept in a file: a pack
that was made by a former definition may arrive long after the source has another.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

import msgspec

from host.files.atomic_file import replace_file
from static_engine.lake.lake_errors import LakeError
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import SITE_SOURCES
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType
from streamsql.errors import WireError
from streamsql.mapping.source_mapping import ColumnMapping, SourceMapping
from streamsql.wire.source_shapes import SourceShape, layout_of, shape_of

MAX_DEFINITIONS = 20_000
"""Of all sources together; more are refused."""
MAX_LAYOUTS = 200
"""Definitions of one source; the oldest goes for a new one."""
MAX_FILE_BYTES = 100_000_000

_NO_CONNECTOR = ""
log = logging.getLogger(__name__)


class KnownDefinitions:
    """All definitions, by source and layout. Threads may share it.

    Attributes:
        unkept: Sources whose readings do not go to the lake: option `keep = 'no'`.

    Args:
        path: The file, made when something is learned.

    Raises:
        LakeError: It is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self.unkept: frozenset[str] = frozenset()
        self._known: dict[str, dict[int, SourceDefinition]] = {}
        for definition in SITE_SOURCES:
            self._known[definition.name] = {layout_of(definition.scan()): definition}
        self._own = frozenset(self._known)
        for shape in self._read():
            self._put(definition_of_shape(shape))

    def learn(self, shapes: Iterable[SourceShape]) -> list[str]:
        """Keep what sources look like; return the names of those that had no such layout.

        A shape that is no definition, or one too many, is left out: its packs become dead letters.

        Raises:
            OSError: The file cannot be written.
        """
        new: list[str] = []
        with self._lock:
            for shape in shapes:
                if shape.source in self._own:
                    continue
                try:
                    definition = definition_of_shape(shape)
                except WireError as error:
                    log.warning("a definition of a gateway is left out: %s", error.message)
                    continue
                if self._put(definition):
                    new.append(definition.name)
            if new:
                self._write()
        return new

    def learn_order(self, definition: SourceDefinition) -> list[str]:
        """Keep a definition of the catalog; see `learn`."""
        return self.learn([shape_of(definition.scan())])

    def find(self, name: str, layout: int) -> SourceDefinition | None:
        """Return a definition by its layout; layout 0: the newest."""
        layouts = self._known.get(name)
        if not layouts:
            return None
        return layouts.get(layout) if layout else layouts[next(reversed(layouts))]

    def of(self, name: str) -> dict[int, SourceDefinition]:
        """Return all definitions of a source by layout, the newest last."""
        return dict(self._known.get(name, {}))

    def _put(self, definition: SourceDefinition) -> bool:
        """Put a definition last; return whether it is new."""
        layouts = self._known.get(definition.name)
        layout = layout_of(definition.scan())
        if layouts is None:
            if len(self._known) >= MAX_DEFINITIONS:
                log.warning(
                    "the definition of source %.80r is left out: %d sources are known already",
                    *(definition.name, MAX_DEFINITIONS),
                )
                return False
            layouts = self._known[definition.name] = {}
        grown = {key: value for key, value in layouts.items() if key != layout}
        grown[layout] = definition
        while len(grown) > MAX_LAYOUTS:
            del grown[next(iter(grown))]
        self._known[definition.name] = grown  # readers on other threads see the one or the other
        return layout not in layouts

    def _read(self) -> list[SourceShape]:
        try:
            if self._path.stat().st_size > MAX_FILE_BYTES:
                raise LakeError(f"{self._path} is larger than {MAX_FILE_BYTES:,} bytes")
            return msgspec.json.decode(self._path.read_bytes(), type=list[SourceShape])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as error:
            raise LakeError(
                f"the pipeline cannot read the definitions of sources in {self._path}: {error}",
                hint="move the file away: present definitions come again from the gateways",
            ) from error

    def _write(self) -> None:
        shapes = [
            shape_of(definition.scan())
            for name, layouts in self._known.items()
            if name not in self._own
            for definition in layouts.values()
        ]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, msgspec.json.encode(shapes))


def definition_of_shape(shape: SourceShape) -> SourceDefinition:
    """Return a definition whose rows look like a shape.

    Raises:
        WireError: It has no columns, or names a type or a column that there is not.
    """
    names = [name for name, _ in shape.columns]
    if not names or len(set(names)) != len(names):
        raise WireError(f"source {shape.source!r:.80} has no columns, or two of one name")
    if shape.units and len(shape.units) != len(names):
        raise WireError(f"source {shape.source!r:.80} has {len(shape.units)} units")
    try:
        fields = tuple(Field(name, DataType(dtype)) for name, dtype in shape.columns)
        key = tuple(names.index(name) for name in shape.key or ())
        time = names.index(shape.time) if shape.time else None
    except ValueError as error:
        raise WireError(f"source {shape.source!r:.80}: {error}") from error
    mapping = None
    if shape.units:
        columns = tuple(ColumnMapping(unit=unit) for unit in shape.units)
        mapping = SourceMapping(_NO_CONNECTOR, columns=columns)
    kind = SourceKind.LINK if shape.is_link else SourceKind.STREAM
    return SourceDefinition(
        shape.source, kind, Schema(fields), key=key, time_column=time, mapping=mapping
    )
