"""The strategies that maintain a recursion, by name, and which one is taken by default.

Alone at a site, or where base rows travel (ways "centre" and "flood"), a *local engine* computes.
Where derived rows travel (ways "annotations" and "witness"), the fixpoint with absorption
provenance does.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from stream_engine.operators.operator import RecursiveOperator
from stream_engine.recursion.absorption import Shipping
from stream_engine.recursion.fixpoint import FixpointOperator
from stream_engine.recursion.local_engine import LocalEngine
from stream_engine.recursion.options import RecursionOptions, options_of
from stream_engine.recursion.program import Program, program_of
from stream_engine.recursion.recompute import RecomputeEngine
from stream_engine.recursion.replicated import ReplicatedFixpoint
from streamsql.algebra.operators import Fixpoint
from streamsql.errors import UnsupportedError

EngineFactory = Callable[[Program, RecursionOptions], LocalEngine]

LOCAL_ENGINES: Mapping[str, EngineFactory] = {
    "recompute": RecomputeEngine,
}
"""Local engines by strategy."""


def recursive_operator(
    node: Fixpoint,
    *,
    site: str,
    sites: tuple[str, ...],
    epoch: int,
    options: RecursionOptions | None = None,
) -> RecursiveOperator:
    """Return an empty operator that maintains a recursion at a site.

    Args:
        node: The fixpoint; its choice counts before the options.
        site: This site.
        sites: All sites that compute the recursion together, in the same order everywhere.
        epoch: Of this site; grows with every restart.
        options: How to do it where the query does not say.

    Raises:
        UnsupportedError: The recursion is not monotone, or the strategy does not fit it.
    """
    options = options_of(node.choice, options)
    make_engine = LOCAL_ENGINES.get(options.strategy)
    travels = options.way in ("centre", "flood")
    if make_engine is not None and (len(sites) == 1 or travels):
        return ReplicatedFixpoint(
            program_of(node), make_engine, site=site, sites=sites, epoch=epoch, options=options
        )
    if options.strategy == "relative":
        options = replace(options, annotations="relative")
    elif options.strategy not in ("auto", "absorption"):
        raise UnsupportedError(
            f"strategy {options.strategy} does not run at {len(sites)} sites",
            hint="add way = 'centre' or way = 'flood', or choose absorption",
        )
    if options.way == "witness":
        options = replace(options, shipping=Shipping.LAZY)
    return FixpointOperator(node, site=site, sites=sites, epoch=epoch, options=options)
