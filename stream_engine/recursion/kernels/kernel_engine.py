"""A recursion as a graph problem, kept at one place by a dynamic-graph algorithm."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence

from typing_extensions import override

from stream_engine.recursion.kernels.carried import CarriedCosts, OtherWeightsError, carries
from stream_engine.recursion.kernels.graph_problem import GraphProblem, Kind
from stream_engine.recursion.kernels.kernel_input import GiveUpError, GraphInput, TooLargeError
from stream_engine.recursion.kernels.payload import PayloadView
from stream_engine.recursion.kernels.recognition import NotAGraphProblemError, recognise
from stream_engine.recursion.kernels.rows_view import KernelView, RowsView
from stream_engine.recursion.program.fixpoint_options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.program import Program, program_of
from stream_engine.recursion.ranked.best_engine import ranked_engine
from streamsql.algebra.choices import Compiled
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.errors import UnsupportedError


class KernelEngine(LocalEngine):
    """A `LocalEngine` for graph problems.

    When data come that the algorithm cannot take (a negative weight), it hands over to the ranked
    engine, with all leaf rows, and says so in `description`.

    State: the leaf rows, the graph, and the keys of all groups; the view is computed from the keys.
    Work per change: in proportion to the keys that change and the edges at their nodes.

    Args:
        options: `elastic` and `compiled` count here.

    Raises:
        UnsupportedError: Compiled code is asked for, and there is no compiler.
    """

    def __init__(self, program: Program, problem: GraphProblem, options: RecursionOptions) -> None:
        self.counters = FixpointCounters()
        self._program = program
        self._problem = problem
        self._options = options
        self._how = "python"
        if can_be_compiled(problem, options.compiled):
            self._how = "compiled"
        elif options.compiled == Compiled.YES:
            self._how = "python: this kind is not compiled"
        self._leaves: tuple[dict[Row, None], ...] = tuple({} for _ in program.uses)
        self._other: LocalEngine | None = None
        self._why = ""
        self._carries = carries(problem)
        self._start()

    def _start(self) -> None:
        problem = self._problem
        self._input = GraphInput(problem, len(self._program.uses))
        self._view: KernelView
        if problem.payload and self._carries:
            self._view = CarriedCosts(self._program, problem, self._input, self._options.elastic)
        elif problem.payload:
            self._view = PayloadView(self._program, problem, self._input, self._options.elastic)
        elif self._how == "compiled":
            # Imported here because it needs numba.
            from stream_engine.recursion.kernels.compiled_view import CompiledView  # noqa: PLC0415

            self._view = CompiledView(problem, self._input)
        else:
            self._view = RowsView(problem, self._input, self._options.elastic)

    @property
    @override
    def description(self) -> str:
        title = self._problem.title
        if self._other is not None:
            return f"{self._other.description} (kernel {title} gave up: {self._why})"
        return f"kernel: {title} ({self._how})"

    @override
    def change(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        if self._other is not None:
            return self._other.change(entered, left)
        self.counters.settles += 1
        for leaf, come, gone in zip(self._leaves, entered, left, strict=True):
            for row in gone:
                del leaf[row]
            for row in come:
                leaf[row] = None
        try:
            return self._changed(entered, left)
        except GiveUpError as error:
            self._why = str(error)
            return self._replaced(self._by_another)
        except OtherWeightsError:
            self._carries = False
            return self._replaced(self._changed)
        except TooLargeError as error:
            self._how = f"python: {error}"
            return self._replaced(self._changed)

    def _changed(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        change = self._input.change(entered, left)
        before = self._view.touched
        delta = self._view.change(change)
        self._input.release()
        self.counters.derivations += change.derivations
        self.counters.touched += self._view.touched - before
        self._program.check_size(self._view.size)
        return delta

    def _by_another(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        self._other = ranked_engine(self._program, self._options)
        delta = self._other.change(entered, left)
        self._other.counters = self.counters
        return delta

    def _replaced(
        self, change: Callable[[Sequence[Sequence[Row]], Sequence[Sequence[Row]]], Delta]
    ) -> Delta:
        """Restart with all leaf rows; the view so far is that before the change."""
        before = list(self._view.rows())
        self._start()
        delta = change([list(leaf) for leaf in self._leaves], [[] for _ in self._leaves])
        if self._other is not None:
            self._leaves = tuple({} for _ in self._leaves)
        for row in before:
            if delta.pop(row, None) is None:
                delta[row] = -1
        return delta

    @override
    def rows(self) -> Iterator[Row]:
        return self._view.rows() if self._other is None else self._other.rows()

    @override
    def size(self) -> int:
        return self._view.size if self._other is None else self._other.size()

    @override
    def clear(self) -> None:
        if self._other is not None:
            self._other.clear()
        self._leaves = tuple({} for _ in self._leaves)
        self._start()


def kernel_engine(program: Program, options: RecursionOptions) -> LocalEngine:
    """Return the kernel for a recursion that is a graph problem.

    Raises:
        UnsupportedError: It is none.
    """
    try:
        problem = recognise(program)
    except NotAGraphProblemError as error:
        raise UnsupportedError(
            f"recursion {program.name} is not a graph problem with a kernel: {error}",
            hint="choose strategy = 'ranked', or omit the option",
        ) from None
    return KernelEngine(program, problem, options)


def automatic_engine(program: Program, options: RecursionOptions) -> LocalEngine:
    """Return a kernel where there is one for a recursion, else the engine for any recursion."""
    try:
        return KernelEngine(program, recognise(program), options)
    except NotAGraphProblemError:
        return ranked_engine(program, options)


def recognised(node: Fixpoint) -> tuple[str | None, str]:
    """Return which kernel fits a recursion ("cheapest"), or None with the reason why none does.

    Raises:
        UnsupportedError: The recursion is not monotone.
    """
    try:
        return recognise(program_of(node)).title, ""
    except NotAGraphProblemError as error:
        return None, str(error)


def is_compilable(problem: GraphProblem) -> bool:
    """Return whether there is compiled code for a problem."""
    return problem.kind in (Kind.REACH, Kind.COST) and not problem.payload


def can_be_compiled(problem: GraphProblem, choice: Compiled) -> bool:
    """Return whether a problem is solved by compiled code.

    Args:
        problem: The graph problem.
        choice: AUTO means NO: loading the compiler takes 140 MB, and
            compiling some seconds, which nobody should pay who has not asked for it.

    Raises:
        UnsupportedError: It is asked for, and the compiler is not installed.
    """
    fits = is_compilable(problem)
    if choice == Compiled.YES and importlib.util.find_spec("numba") is None:
        raise UnsupportedError(
            "compiled kernels need the package numba, which is not installed",
            hint="install pando[compiled] (requirements/compiled.txt), or remove compiled = 'yes'",
        )
    return fits and choice == Compiled.YES
