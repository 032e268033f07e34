"""Queries between whose operators changes may be pending when a step ends."""

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

FUNCTIONS_OF_INPUTS = (
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
"""Plan nodes whose output is a function of their inputs' relations, however the inputs' changes are
mixed. Nodes not named here, later ones too, are taken not to be one."""

RECURSION = (Fixpoint, RecursiveReference)
"""Functions of their inputs as well, but they receive messages of other sites in every step."""

_PLAIN_NODES = (OperatorNode, RemoteNode, SourceNode)


def may_wait(bundle: FragmentBundle, site: str, circuits: Iterable[Circuit]) -> bool:
    """Whether changes may be pending between the operators of a query at a site.

    Each queue keeps its order, so an operator has always taken a prefix of each input, which is a
    relation as well: that is enough for operators that are functions of their inputs. It is not
    enough for a window that closes: progress says that all rows before it have come, and would
    overtake rows that are pending at any site. A recursion runs to its end in every step, with all
    operators below it at its site.

    Args:
        bundle: The whole plan.
        site: The site's id.
        circuits: Of the fragments there; all their nodes have to be plain.
    """
    if any(type(node) not in _PLAIN_NODES for circuit in circuits for node in circuit.nodes):
        return False
    here = {fragment.id for fragment in bundle.at(site)}
    return all(
        type(node) in FUNCTIONS_OF_INPUTS or (type(node) in RECURSION and fragment.id not in here)
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
    )
