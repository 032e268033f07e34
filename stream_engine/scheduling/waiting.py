"""Where changes may be left waiting between operators when a step ends."""

from collections.abc import Iterable

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import OperatorNode, RemoteNode, SourceNode
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    Materialize,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    SessionWindow,
    SetOperation,
    TopN,
    UnionAll,
    Values,
    Window,
    walk_plan,
)
from streamsql.wire.fragments import FragmentBundle

_FUNCTIONS_OF_THEIR_INPUTS = (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    HopWindow,
    Join,
    Materialize,
    OverWindow,
    Project,
    RemoteSource,
    Scan,
    SessionWindow,
    SetOperation,
    TopN,
    UnionAll,
    Values,
    Window,
)
"""Plan nodes whose output is a function of what each input holds, however the inputs' changes are
mixed. Whatever is not named here, a later operator too, is taken not to be one."""

_AT_ANOTHER_SITE = (*_FUNCTIONS_OF_THEIR_INPUTS, Fixpoint, RecursiveReference)


_PLAIN_NODES = (OperatorNode, RemoteNode, SourceNode)


def may_wait(bundle: FragmentBundle, site: str, circuits: Iterable[Circuit]) -> bool:
    """Whether changes may be left waiting between the operators of a query at a site.

    Each queue keeps its order, so an operator has always taken a beginning of what each input gave,
    which is a relation as well: that is enough for operators that are functions of their inputs.
    Not for a window that closes, where the progress of the sources says that all rows before it
    have come (at whichever site: rows left waiting at a gateway would be overtaken there), nor for
    anything else that depends on which changes come together. A recursion hears of its sites in
    every step, so it and what is below it at its site runs to its end; what other sites feed into
    it may come when it likes.

    Args:
        bundle: The whole plan.
        site: The site's id.
        circuits: Of the fragments there; a kind of node that is more than its operator runs
            through as well.
    """
    if any(type(node) not in _PLAIN_NODES for circuit in circuits for node in circuit.nodes):
        return False
    here = {fragment.id for fragment in bundle.at(site)}
    return all(
        type(node) in _allowed(fragment.id in here)
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
    )


def _allowed(is_here: bool) -> tuple[type[Plan], ...]:
    return _FUNCTIONS_OF_THEIR_INPUTS if is_here else _AT_ANOTHER_SITE
