"""Queries between whose operators changes may be pending when a step ends."""

from collections.abc import Iterable

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import OperatorNode, RemoteNode, SourceNode
from streamsql.algebra.operators import walk_plan
from streamsql.algebra.streams import FUNCTIONS_OF_INPUTS, RECURSION
from streamsql.wire.fragments import FragmentBundle

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
