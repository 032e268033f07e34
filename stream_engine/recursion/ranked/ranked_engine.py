"""The ranked engine of a recursion: with or without aggregate selection."""

from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.program import Program
from stream_engine.recursion.ranked.best_engine import RankedBestEngine
from stream_engine.recursion.ranked.set_engine import RankedSetEngine


def ranked_engine(program: Program, options: RecursionOptions) -> LocalEngine:
    """Return an empty engine.

    Raises:
        UnsupportedError: A rule joins too many relations.
    """
    if program.selection is None:
        return RankedSetEngine(program, options)
    return RankedBestEngine(program, options, program.selection)
