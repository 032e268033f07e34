"""The catalog: definitions by name. Names are case-insensitive and kept in lower case."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamsql.catalog.definitions import Definition, SourceDefinition, ViewDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition
from streamsql.catalog.read_gate import Gate, Read, Refusal
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.catalog.system import SYSTEM_SOURCES, is_system, system_source
from streamsql.errors import BindingError, Span


class _Known(NamedTuple):
    """Definitions by name, and those of the library, also where others have their names."""

    by_name: dict[str, Definition]
    library: dict[str, Definition]


class Catalog:
    """A mutable set of definitions with unique names, and the system's sources.

    Behind a gate it lists only the relations that may be read; `find` finds the others too, so
    that whoever binds a name asks `refusal` first.
    """

    def __init__(
        self,
        definitions: tuple[Definition, ...] = (),
        *,
        known: "_Known | None" = None,
        gate: Gate | None = None,
        own: frozenset[str] = frozenset(),
    ) -> None:
        """Define what is given.

        Args:
            definitions: In their order.
            known: Definitions that are shared with another catalog.
            gate: Says what may be read; without it all of it.
            own: Names that whoever reads is about to make.
        """
        self._known = known or _Known({}, {})
        self._by_name, self._library = self._known
        self._gate = gate
        self._own = own
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

    def behind(self, gate: Gate | None) -> "Catalog":
        """Return the same definitions, also those that are made later, for a reader."""
        return Catalog(known=self._known, gate=gate)

    def scratch(self, *making: str) -> "Catalog":
        """Return a copy whose changes are not seen here.

        Args:
            making: Names of views that read for whoever is about to make them.
        """
        copied = _Known(dict(self._by_name), dict(self._library))
        own = self._own | {name.lower() for name in making}
        return Catalog(known=copied, gate=self._gate, own=own)

    def define_here(self, definition: Definition) -> None:
        """Add a definition to a scratch copy, replacing one of its name; its reader may read it."""
        self.define(definition, replace=True)
        self._own |= {definition.name.lower()}

    def read_of(self, name: str, expanding: Iterable[str] = ()) -> Read:
        """Return the reading of a relation.

        Args:
            name: Of the relation.
            expanding: The views that are being expanded, outermost first.
        """
        within = ""
        for view in expanding:
            definition = self._by_name.get(view)
            if view not in self._own and not (definition and is_library(definition)):
                within = view
        return Read(name.lower(), within)

    def refusal(self, read: Read) -> Refusal | None:
        """Return why a relation may not be read, or None."""
        if self._gate is None or read.relation in self._own:
            return None
        definition = self.find(read.relation)
        if definition is None or not is_relation(definition) or is_library(definition):
            return None
        return self._gate(read)

    def check_read(self, name: str, span: Span | None = None) -> None:
        """Check that a statement may read a relation that it names.

        Raises:
            BindingError: It may not.
        """
        refused = self.refusal(Read(name.lower()))
        if refused is not None:
            raise refused.error(span)

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
        every = (*self._by_name.values(), *SYSTEM_SOURCES)
        if self._gate is None:
            return iter(every)
        return (d for d in every if self.refusal(Read(d.name.lower())) is None)

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


def is_relation(definition: Definition) -> bool:
    """Whether a definition can be read in FROM."""
    return isinstance(definition, SourceDefinition | ViewDefinition)


def is_library(definition: Definition) -> bool:
    """Whether a definition came with the installation; users may put theirs in its place."""
    return isinstance(definition, ViewDefinition) and definition.library
