"""When a recursion is given to a kernel."""

from stream_engine.recursion.kernels.kernel_engine import KernelEngine
from stream_engine.recursion.kernels.recognition import NotAGraphProblemError, recognise
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.program import Program, program_of
from stream_engine.recursion.ranked.ranked_engine import ranked_engine
from streamsql.algebra.operators import Fixpoint
from streamsql.errors import UnsupportedError


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
    return KernelEngine(program, problem, options, ranked_engine)


def automatic_engine(program: Program, options: RecursionOptions) -> LocalEngine:
    """Return a kernel where there is one for a recursion, else the engine for any recursion."""
    try:
        problem = recognise(program)
    except NotAGraphProblemError:
        return ranked_engine(program, options)
    return KernelEngine(program, problem, options, ranked_engine)


def recognised(node: Fixpoint) -> tuple[str | None, str]:
    """Return which kernel fits a recursion ("cheapest"), or None with the reason why none does.

    Raises:
        UnsupportedError: The recursion is not monotone.
    """
    try:
        return recognise(program_of(node)).title, ""
    except NotAGraphProblemError as error:
        return None, str(error)
