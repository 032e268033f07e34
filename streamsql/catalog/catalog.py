"""The catalog: definitions by name. Names are case-insensitive and kept in lower case."""

from collections.abc import Iterator

from streamsql.catalog.definitions import Definition, SourceDefinition, ViewDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.catalog.system import SYSTEM_SOURCES, is_system, system_source
from streamsql.errors import BindingError, Span


class Catalog:
    """A mutable set of definitions with unique names, and the system's sources."""

    def __init__(self, definitions: tuple[Definition, ...] = ()) -> None:
        self._by_name: dict[str, Definition] = {}
        self._library: dict[str, Definition] = {}
        for definition in definitions:
            self.define(definition)

    def define(self, definition: Definition, *, replace: bool = False) -> None:
        """Add a definition; it may take the name of a library view.

        Raises:
            BindingError: The name is taken and `replace` is false, or it is a system source's.
        """
        if is_system(definition):
            return
        check_not_system(definition.name)
        existing = self._by_name.get(definition.name.lower())
        if existing is not None and not replace and not is_library(existing):
            raise BindingError(
                f"{kind_of(existing)} {definition.name!r} already exists",
                hint=f"DROP {kind_of(existing).upper()} {definition.name} first",
                code="already_exists",
            )
        self._by_name[definition.name.lower()] = definition
        if is_library(definition):
            self._library[definition.name.lower()] = definition

    def find(self, name: str) -> Definition | None:
        """Return the definition of that name, or None."""
        return self._by_name.get(name.lower()) or system_source(name)

    def drop(self, name: str) -> Definition:
        """Remove and return a definition; the library view whose name it had is back then.

        Raises:
            BindingError: There is none of that name, or it is a system source's.
        """
        check_not_system(name, code="in_use")
        if name.lower() not in self._by_name:
            raise BindingError(
                f"there is nothing with the name {name!r}",
                hint="SHOW SOURCES",
                code="unknown_relation",
            )
        dropped = self._by_name.pop(name.lower())
        library = self._library.get(name.lower(), dropped)
        if library is not dropped:
            self._by_name[name.lower()] = library
        return dropped

    def __iter__(self) -> Iterator[Definition]:
        """Yield definitions in the order they were made, those of the system last."""
        return iter((*self._by_name.values(), *SYSTEM_SOURCES))

    def __len__(self) -> int:
        return len(self._by_name) + len(SYSTEM_SOURCES)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order they were made."""
        return tuple(definition.name.lower() for definition in self)

    @property
    def sources(self) -> tuple[SourceDefinition, ...]:
        """Streams and link streams."""
        return tuple(d for d in self if isinstance(d, SourceDefinition) and not d.is_table)

    @property
    def tables(self) -> tuple[SourceDefinition, ...]:
        """Stored tables, with views that are refreshed at times of day."""
        return tuple(d for d in self if isinstance(d, SourceDefinition) and d.is_table)

    @property
    def refreshed(self) -> tuple[SourceDefinition, ...]:
        """Views that are refreshed at times of day."""
        return tuple(d for d in self.tables if d.refresh is not None)

    @property
    def views(self) -> tuple[ViewDefinition, ...]:
        """Views that are kept up to date."""
        return tuple(d for d in self if isinstance(d, ViewDefinition))

    @property
    def functions(self) -> tuple[FunctionDefinition, ...]:
        """Functions and aggregates of the user."""
        return tuple(d for d in self if isinstance(d, FunctionDefinition))

    @property
    def displays(self) -> tuple[DisplayDefinition, ...]:
        """Places that show answers."""
        return tuple(d for d in self if isinstance(d, DisplayDefinition))

    @property
    def alarms(self) -> tuple[AlarmDefinition, ...]:
        """Queries whose rows raise alarms."""
        return tuple(d for d in self if isinstance(d, AlarmDefinition))

    @property
    def sinks(self) -> tuple[SinkDefinition, ...]:
        """Queries whose answers leave the federation."""
        return tuple(d for d in self if isinstance(d, SinkDefinition))


def check_not_system(name: str, span: Span | None = None, *, code: str = "reserved_name") -> None:
    """Refuse to define or to drop a system source.

    Raises:
        BindingError: The name is one.
    """
    found = system_source(name)
    if found is not None:
        raise BindingError(
            f"{found.name} is a system source of every federation and cannot be changed",
            span=span,
            hint="choose another name" if code == "reserved_name" else "",
            code=code,
        )


def kind_of(definition: Definition) -> str:
    """Return `source`, `table`, `view`, `function`, …: the word used in DROP."""
    if isinstance(definition, DisplayDefinition):
        return "display"
    if isinstance(definition, AlarmDefinition):
        return "alarm"
    if isinstance(definition, SinkDefinition):
        return "sink"
    if isinstance(definition, ViewDefinition):
        return "view"
    if isinstance(definition, FunctionDefinition):
        return "aggregate" if definition.aggregate else "function"
    if definition.refresh is not None:
        return "view"
    return "table" if definition.is_table else "source"


def is_library(definition: Definition) -> bool:
    """Whether a definition came with the installation; users may put theirs in its place."""
    return isinstance(definition, ViewDefinition) and definition.library
