"""Compiled searches, where numba is installed and the query asks for them.

The same algorithm as `reach` and `costs`, over arrays: keys in a matrix of nodes and groups, edges
in linked lists of a table. Kinds with payload or levels are not compiled.
"""

import importlib.util
from typing import TYPE_CHECKING

from stream_engine.recursion.kernels.problem import GraphProblem, Kind
from streamsql.errors import UnsupportedError

if TYPE_CHECKING:
    from stream_engine.recursion.kernels.kernel_input import GraphInput
    from stream_engine.recursion.kernels.rows_view import KernelView


def is_compilable(problem: GraphProblem) -> bool:
    """Return whether there is compiled code for a problem."""
    return problem.kind in (Kind.REACH, Kind.COST) and not problem.payload


def can_be_compiled(problem: GraphProblem, choice: str) -> bool:
    """Return whether a problem is solved by compiled code.

    Args:
        problem: The graph problem.
        choice: "no", "yes" or "auto". The last means "no": loading the compiler takes 140 MB, and
            compiling some seconds, which nobody should pay who has not asked for it.

    Raises:
        UnsupportedError: It is asked for, and the compiler is not installed.
    """
    fits = is_compilable(problem)
    if choice == "yes" and importlib.util.find_spec("numba") is None:
        raise UnsupportedError(
            "compiled kernels need the package numba, which is not installed",
            hint="install pando[compiled] (requirements/compiled.txt), or remove compiled = 'yes'",
        )
    return fits and choice == "yes"


def compiled_view(problem: GraphProblem, source: "GraphInput") -> "KernelView":
    """Return an empty view that compiled code maintains."""
    from stream_engine.recursion.kernels.compiled_view import CompiledView  # noqa: PLC0415

    return CompiledView(problem, source)
