"""The synopses of a query that may be shared: its windows and join sides."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import OperatorNode, SourceNode
from stream_engine.operators.windows.rows_window import RowsWindow
from stream_engine.operators.windows.stretches import Stretch, stretch_of
from stream_engine.operators.windows.time_window import RangeWindow, SteppedWindow
from stream_engine.sharing.index_store import IndexStore, IndexStub
from stream_engine.sharing.rows_store import RowsStore, RowsStub
from stream_engine.sharing.time_store import TimeStore, TimeStub
from stream_engine.state.indexed_relation import HoldsIndexes, IndexedRelation, KeyedRows
from streamsql.algebra.explain import describe
from streamsql.algebra.operators import (
    Fixpoint,
    OnClose,
    Plan,
    RecursiveReference,
    RemoteSource,
    Scan,
    Window,
    WindowKind,
    walk_plan,
)
from streamsql.errors import InternalError

Store = IndexStore | TimeStore | RowsStore
AnyStub = IndexStub | TimeStub | RowsStub


@dataclass(slots=True, eq=False)
class Slot(ABC):
    """A place of a private synopsis or of a stub.

    Attributes:
        entity: "f1/3", the operator with number 3 in the circuit of fragment f1; ".0" after it is
            the first input of a join, a further ".1" the second index of that input.
        key: Equal for synopses that one store could keep.
        stub: Of the store that keeps it; None while it is private.
    """

    query: str
    entity: str
    key: Hashable
    stub: AnyStub | None

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of a store of such synopses."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The plan of its rows, as EXPLAIN writes it."""

    @abstractmethod
    def rows(self) -> int:
        """Return the rows it sees."""

    @abstractmethod
    def found(self, number: int) -> tuple[Store, AnyStub]:
        """Return a store of this private synopsis, and its first stub."""

    @abstractmethod
    def admitted(self, store: Store) -> AnyStub | None:
        """Return a stub of a store in place of this synopsis, or None if they differ too much.

        Does not change the slot, which may be private or hold a stub of another store.
        """

    @abstractmethod
    def use(self, stub: AnyStub) -> None:
        """Let the operator use a stub from now on."""

    @abstractmethod
    def leave(self) -> None:
        """Let the operator use a private synopsis from now on."""


@dataclass(slots=True, eq=False)
class WindowSlot(Slot):
    """A window over a source."""

    node: SourceNode
    window: Window

    @property
    def kind(self) -> str:
        """Rows by time, or the last ones."""
        return "rows" if self.window.kind == WindowKind.ROWS else "time"

    @property
    def label(self) -> str:
        """The source."""
        return describe(self.window.input)

    def rows(self) -> int:
        """Return the rows it sees."""
        return self.node.operator.state_rows()

    @property
    def _stretch(self) -> Stretch:
        return stretch_of(self.window)

    def found(self, number: int) -> tuple[Store, AnyStub]:
        """Return a store of the window's rows."""
        operator = self.node.operator
        window = self.window
        store: Store = (
            RowsStore(number, window.partition, bounded=operator.bounded)
            if isinstance(operator, RowsWindow)
            else TimeStore(number)
        )
        first = self.admitted(store)
        if first is None:
            raise InternalError("a new store admits every window")
        return store, first

    def admitted(self, store: Store) -> AnyStub | None:
        """Return a stub if the window has the rows that the store would show it."""
        operator = self.node.operator
        if isinstance(operator, TimeStub | RowsStub):
            operator = operator.as_private()
        if isinstance(store, RowsStore) and isinstance(operator, RowsWindow):
            return store.admit(operator)
        if isinstance(store, TimeStore) and isinstance(operator, RangeWindow | SteppedWindow):
            return store.admit(operator, self._stretch)
        raise InternalError(f"a {type(operator).__name__} in a {type(store).__name__}")

    def use(self, stub: AnyStub) -> None:
        """Put a stub in the window's place."""
        if isinstance(stub, IndexStub):
            raise InternalError("a window is not kept by key")
        self.stub = self.node.operator = stub

    def leave(self) -> None:
        """Put a private window in the stub's place."""
        stub = self.stub
        if stub is None or isinstance(stub, IndexStub):
            raise InternalError("only a shared window leaves its store")
        self.node.operator = stub.as_private()
        release(stub)
        self.stub = None


@dataclass(slots=True, eq=False)
class IndexSlot(Slot):
    """An index of a join."""

    operator: HoldsIndexes
    number: int
    plan: Plan

    @property
    def kind(self) -> str:
        """Rows by key."""
        return "index"

    @property
    def label(self) -> str:
        """The operator whose output it keeps."""
        return describe(self.plan)

    @property
    def _kept(self) -> KeyedRows:
        return self.operator.indexes()[self.number].rows

    def rows(self) -> int:
        """Return the rows it sees."""
        return len(self._kept)

    def found(self, number: int) -> tuple[Store, AnyStub]:
        """Return a store that owns the index."""
        kept = self._kept
        if not isinstance(kept, IndexedRelation):
            raise InternalError("a store begins with a private index")
        store = IndexStore(number, kept)
        return store, IndexStub(store)

    def admitted(self, store: Store) -> AnyStub | None:
        """Return a stub if the index has about the same rows."""
        if not isinstance(store, IndexStore):
            raise InternalError(f"an index in a {type(store).__name__}")
        return store.admit(self._kept)

    def use(self, stub: AnyStub) -> None:
        """Put a stub in the index's place."""
        if not isinstance(stub, IndexStub):
            raise InternalError("a join side is kept by key")
        self.operator.put_index(self.number, stub)
        self.stub = stub

    def leave(self) -> None:
        """Put a private index in the stub's place: the store's, if no other stub reads it."""
        stub = self.stub
        if not isinstance(stub, IndexStub):
            raise InternalError("only a shared index leaves its store")
        alone = stub.sees_head and len(stub.store.stubs) == 1
        self.operator.put_index(self.number, stub.store.head if alone else stub.content())
        release(stub)
        self.stub = None


def release(stub: AnyStub) -> None:
    """Let a stub go from its store, if it has not gone already."""
    if isinstance(stub, RowsStub):
        if not stub.wants_out:
            stub.store.remove(stub)
    else:
        stub.store.remove(stub)


def slots_of(query: str, circuits: Mapping[str, Circuit]) -> Iterator[Slot]:
    """Yield the slots of a query.

    They are windows over sources, but for `ROWS` with `RANGE`, and indexes by key over subplans
    that read only sources here: what other sites send comes for one query only.
    """
    for fragment, circuit in circuits.items():
        read: dict[tuple[int, int], Plan] = {}
        for node in circuit.nodes:
            read.update(dict.fromkeys(node.wiring.consumers, node.wiring.plan))
        for number, node in enumerate(circuit.nodes):
            entity = f"{fragment}/{number}"
            if isinstance(node, SourceNode):
                yield from _window(query, entity, node)
            elif isinstance(node, OperatorNode) and isinstance(node.operator, HoldsIndexes):
                seen: dict[int, int] = {}
                for place, index in enumerate(node.operator.indexes()):
                    plan = read[number, index.port]
                    name = f"{entity}.{index.port}"
                    again = seen.setdefault(index.port, 0)
                    seen[index.port] += 1
                    if _reads_only_sources(plan):
                        key = ("index", plan, index.columns, index.needed)
                        name = f"{name}.{again}" if again else name
                        yield IndexSlot(query, name, key, None, node.operator, place, plan)


def _window(query: str, entity: str, node: SourceNode) -> Iterator[Slot]:
    window, operator = node.wiring.plan, node.operator
    if not isinstance(window, Window):
        return
    if isinstance(operator, RowsWindow):
        if not operator.is_timed:
            key: Hashable = ("rows", window.input, window.partition)
            yield WindowSlot(query, entity, key, None, node, window)
    elif isinstance(operator, RangeWindow | SteppedWindow):
        yield WindowSlot(query, entity, ("time", window.input), None, node, window)


def _reads_only_sources(plan: Plan) -> bool:
    nodes = list(walk_plan(plan))
    elsewhere = (RemoteSource, Fixpoint, RecursiveReference, OnClose)
    return not any(isinstance(node, elsewhere) for node in nodes) and any(
        isinstance(node, Scan) for node in nodes
    )
