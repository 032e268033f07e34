"""A recursion as a graph problem, kept at one place by a dynamic-graph algorithm."""

from collections.abc import Callable, Iterator, Sequence

from stream_engine.recursion.kernels.costs import Costs
from stream_engine.recursion.kernels.input import GiveUpError, GraphInput, InputChange
from stream_engine.recursion.kernels.payload import PayloadView
from stream_engine.recursion.kernels.plateaus import Plateaus
from stream_engine.recursion.kernels.problem import GraphProblem, Kind
from stream_engine.recursion.kernels.reach import Reach
from stream_engine.recursion.kernels.search import Core, GroupedSearch, Keys, Old
from stream_engine.recursion.kernels.shapes import RowShape
from stream_engine.recursion.local_engine import LocalEngine
from stream_engine.recursion.options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program import Program
from streamsql.data.delta import Delta
from streamsql.data.types import Row

Fallback = Callable[[Program, RecursionOptions], LocalEngine]


class KernelEngine:
    """A `LocalEngine` for graph problems.

    When data come that the algorithm cannot take (a negative weight), it hands over to another
    engine, with all leaf rows, and says so in `description`.

    State: the leaf rows, the graph, and the keys of all groups; the view is computed from the keys.
    Work per change: in proportion to the keys that change and the edges at their nodes.

    Args:
        program: The recursion.
        problem: What it is as a graph problem.
        options: `elastic` counts here.
        fallback: Makes the engine that takes over.
    """

    def __init__(
        self,
        program: Program,
        problem: GraphProblem,
        options: RecursionOptions,
        fallback: Fallback,
    ) -> None:
        self.counters = FixpointCounters()
        self._program = program
        self._problem = problem
        self._options = options
        self._fallback = fallback
        self._other: LocalEngine | None = None
        self._why = ""
        self._start()

    def _start(self) -> None:
        self._leaves: tuple[dict[Row, None], ...] = tuple({} for _ in self._program.uses)
        self._input = GraphInput(self._problem, len(self._program.uses))
        self._search = GroupedSearch(self._input.graph, self._core())
        self._shape = RowShape(self._problem)
        self._payload = (
            PayloadView(self._program, self._problem, self._input, self._search)
            if self._problem.payload
            else None
        )

    def _core(self) -> Core:
        graph, elastic = self._input.graph, self._options.elastic
        match self._problem.kind:
            case Kind.REACH:
                return Reach(graph, elastic)
            case Kind.COST:
                return Costs(graph, elastic)
            case Kind.PLATEAU:
                return Plateaus(graph, elastic, weighted=self._problem.weighted)

    @property
    def description(self) -> str:
        """What it is, for EXPLAIN."""
        if self._other is not None:
            return f"{self._other.description} (kernel {self._problem.title} gave up: {self._why})"
        return f"kernel: {self._problem.title} (python)"

    def change(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        """Apply changes of the leaves; return the view's."""
        if self._other is not None:
            return self._other.change(entered, left)
        self.counters.settles += 1
        for leaf, come, gone in zip(self._leaves, entered, left, strict=True):
            for row in gone:
                del leaf[row]
            for row in come:
                leaf[row] = None
        try:
            change = self._input.change(entered, left)
        except GiveUpError as error:
            return self._give_up(str(error))
        delta = self._apply(change)
        self._input.release()
        self.counters.derivations += change.derivations
        self._program.check_size(self.size())
        return delta

    def _apply(self, change: InputChange) -> Delta:
        changes = self._search.change(change.gone, change.come, change.sources)
        if self._payload is not None:
            touched = {group: (d, old) for group, d, old in changes}
            self.counters.touched += sum(len(old) for _, old in touched.values())
            return self._payload.change(change, touched)
        delta: Delta = {}
        for group, d, old in changes:
            self.counters.touched += len(old)
            self._emit(group, d, old, delta)
        return delta

    def _emit(self, group: object, d: Keys, old: Old, delta: Delta) -> None:
        """Add the changed rows of a group."""
        row_of, values = self._shape.row_of, self._input.nodes.values
        if self._problem.kind is Kind.REACH:
            for node, rank in old.items():
                if node in d:
                    if rank is None:
                        delta[row_of(group, values[node], None)] = 1
                elif rank is not None:
                    delta[row_of(group, values[node], None)] = -1
            return
        plateau, sign = self._problem.kind is Kind.PLATEAU, self._problem.negated
        for node, before in old.items():
            after = d.get(node)
            if plateau:
                before = None if before is None else before[0]  # noqa: PLW2901
                after = None if after is None else after[0]
            if before == after:
                continue
            if before is not None:
                delta[row_of(group, values[node], -before if sign else before)] = -1
            if after is not None:
                delta[row_of(group, values[node], -after if sign else after)] = 1

    def _give_up(self, why: str) -> Delta:
        """Hand over to another engine; the view so far is that before the change."""
        before = list(self.rows())
        self._other = other = self._fallback(self._program, self._options)
        self._why = why
        delta = other.change([list(leaf) for leaf in self._leaves], [[] for _ in self._leaves])
        for row in before:
            if delta.pop(row, None) is None:
                delta[row] = -1
        self._start()
        other.counters = self.counters
        return delta

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the view."""
        if self._other is not None:
            yield from self._other.rows()
            return
        if self._payload is not None:
            yield from self._payload.rows()
            return
        row_of, values = self._shape.row_of, self._input.nodes.values
        kind, sign = self._problem.kind, self._problem.negated
        for group, d in self._search.groups.items():
            for node, key in d.items():
                value = key[0] if kind is Kind.PLATEAU else key
                yield row_of(group, values[node], -value if sign else value)

    def size(self) -> int:
        """Return the number of rows of the view."""
        if self._other is not None:
            return self._other.size()
        return self._search.size if self._payload is None else self._payload.size

    def clear(self) -> None:
        """Drop all state."""
        if self._other is not None:
            self._other.clear()
        self._start()
