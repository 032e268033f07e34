"""The strategies that maintain a recursion, by name, and which one is taken by default.

Alone at a site, or where base rows travel (ways "centre" and "flood"), a *local engine* computes.
Where derived rows travel (ways "annotations" and "witness"), the fixpoint with absorption
provenance does.

What only a query that names it needs is imported by its factory. What is for comparison stands in
the source tree and not in the wheel (docs/decisions/0055).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec

from stream_engine.operators.rows.operator import RecursiveOperator
from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.absorption.replicated import ReplicatedFixpoint
from stream_engine.recursion.program.fixpoint_options import RecursionOptions, options_of
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.program import Program, program_of
from stream_engine.recursion.ranked.best_engine import ranked_engine
from streamsql.algebra.choices import Annotations, RecursionChoice, Shipping, Strategy, Way
from streamsql.algebra.operators import Fixpoint
from streamsql.errors import UnsupportedError

EngineFactory = Callable[[Program, RecursionOptions], LocalEngine]


def _automatic(program: Program, options: RecursionOptions) -> LocalEngine:
    # 21 modules that a query with strategy = 'ranked' or 'absorption' does not need.
    from stream_engine.recursion.kernels.kernel_engine import automatic_engine

    return automatic_engine(program, options)


def _kernel(program: Program, options: RecursionOptions) -> LocalEngine:
    from stream_engine.recursion.kernels.kernel_engine import kernel_engine

    return kernel_engine(program, options)


# The next three are for comparison: `_require_installed` comes before them.


def _dred(program: Program, options: RecursionOptions) -> LocalEngine:
    from stream_engine.recursion.baselines.dred.dred_engine import DredEngine

    return DredEngine(program, options)


def _recompute(program: Program, options: RecursionOptions) -> LocalEngine:
    from stream_engine.recursion.baselines.recompute import RecomputeEngine

    return RecomputeEngine(program, options)


def _set(program: Program, options: RecursionOptions) -> LocalEngine:
    from stream_engine.recursion.baselines.set_execution import SetEngine

    return SetEngine(program, options)


LOCAL_ENGINES: Mapping[Strategy, EngineFactory] = {
    Strategy.AUTO: _automatic,
    Strategy.DRED: _dred,
    Strategy.KERNEL: _kernel,
    Strategy.RANKED: ranked_engine,
    Strategy.RECOMPUTE: _recompute,
    Strategy.SET: _set,
}
"""Local engines by strategy; "auto" takes a kernel where there is one, else "ranked"."""

_BASELINES = "stream_engine.recursion.baselines"

FOR_COMPARISON: Mapping[tuple[str, str], str] = {
    ("strategy", Strategy.DRED): _BASELINES,
    ("strategy", Strategy.RECOMPUTE): _BASELINES,
    ("strategy", Strategy.SET): _BASELINES,
    ("strategy", Strategy.RELATIVE): "stream_engine.provenance.relative",
    ("annotations", Annotations.RELATIVE): "stream_engine.provenance.relative",
    ("annotations", Annotations.BDD): "stream_engine.recursion.absorption.token_order",
}
"""Options that no query needs, by name and value, with a module that the wheel leaves out."""


def _require_installed(options: RecursionOptions) -> None:
    """Refuse an option for comparison in an installation without it.

    Raises:
        UnsupportedError: Its module is not there.
    """
    for (name, value), module in FOR_COMPARISON.items():
        if getattr(options, name) == value and find_spec(module) is None:
            default = "dnf" if name == "annotations" else "auto"
            raise UnsupportedError(
                f"{name} = '{value}' is for comparison and is not in the installed package",
                hint=f"remove it: the default, {name} = '{default}', gives the same rows. "
                f"A checkout of Pando's source has {name} = '{value}'",
            )


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
        UnsupportedError: The recursion is not monotone, the strategy does not fit it, or is not
            installed.
    """
    options = options_of(node.choice, options)
    _require_installed(options)
    make_engine = LOCAL_ENGINES.get(_local_strategy(node.choice, options))
    travels = options.way in (Way.CENTRE, Way.FLOOD)
    at_one_place = len(sites) == 1 or travels
    if make_engine is not None and at_one_place:
        program = program_of(node, interrupted=options.interrupted)
        return ReplicatedFixpoint(
            program, make_engine, site=site, sites=sites, epoch=epoch, options=options
        )
    if options.strategy == Strategy.DRED:
        from stream_engine.recursion.baselines.dred.dred_operator import DredOperator

        program = program_of(node, interrupted=options.interrupted)
        return DredOperator(program, site=site, sites=sites, epoch=epoch, options=options)
    if options.strategy == Strategy.SET:
        from stream_engine.recursion.baselines.set_execution import SetOperator

        program = program_of(node, interrupted=options.interrupted)
        return SetOperator(program, site=site, sites=sites, options=options)
    if options.strategy == Strategy.RELATIVE:
        options = replace(options, annotations=Annotations.RELATIVE)
    elif options.strategy not in (Strategy.AUTO, Strategy.ABSORPTION):
        raise UnsupportedError(
            f"strategy {options.strategy} does not run at {len(sites)} sites",
            hint="add way = 'centre' or way = 'flood', or choose absorption",
        )
    if options.way == Way.WITNESS or _is_undecided(node.choice, options):
        options = replace(options, shipping=Shipping.WITNESS)
    return FixpointOperator(node, site=site, sites=sites, epoch=epoch, options=options)


def _local_strategy(choice: RecursionChoice, options: RecursionOptions) -> Strategy:
    """Return what maintains a recursion where only base rows travel, unless that is said.

    A query that says how annotations are kept or shipped wants annotations.
    """
    says_annotations = {choice.annotations, choice.order, choice.ship} != {"auto"}
    if options.strategy == Strategy.AUTO and says_annotations:
        return Strategy.ABSORPTION
    return options.strategy


def _is_undecided(choice: RecursionChoice, options: RecursionOptions) -> bool:
    """Whether nobody has said how derived rows travel: then witnesses do, in the fewest bytes."""
    default = RecursionOptions()
    return (
        options.strategy == Strategy.AUTO
        and options.way == Way.AUTO
        and choice.ship == choice.annotations == "auto"
        and options.shipping is default.shipping
        and options.annotations == default.annotations
    )
