"""Methods of fragments in words: what each does with the rows that it reads."""

from federated_optimizer.costs.fragment_estimates import is_part
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Materialize,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    TopN,
    UnionAll,
    Values,
    Window,
    walk_plan,
)
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

_QUIET = (Scan, Window, RemoteSource, RecursiveReference, Values, Materialize, Project, UnionAll)
"""Operators that only name, choose or hold rows."""


def method_of(fragment: Fragment, bundle: FragmentBundle) -> str:
    """Return the operators of a fragment, those nearest to its result first; else what it sends."""
    nodes = tuple(walk_plan(fragment.plan))
    reads = [node.fragment for node in nodes if isinstance(node, RemoteSource)]
    found = dict.fromkeys(
        _words(node, fragment, bundle) for node in nodes if not isinstance(node, _QUIET)
    )
    if found:
        keys = fragment.engine == Engine.STATIC and bool(reads)
        return ", ".join(found) + (f" by the keys of {', '.join(reads)}" if keys else "")
    is_there = {each.id for each in bundle.fragments}.issuperset(reads)
    if reads and fragment.consumer and is_there:
        return f"keys of {', '.join(dict.fromkeys(reads))}"
    if reads:
        return f"gathers {', '.join(dict.fromkeys(reads))}"
    sources = dict.fromkeys(node.source for node in nodes if isinstance(node, Scan))
    return f"all of {', '.join(sources)}" if sources else "constant rows"


def _words(node: Plan, fragment: Fragment, bundle: FragmentBundle) -> str:
    name = type(node).__name__
    if isinstance(node, Aggregate | Distinct | TopN) and is_part(fragment, bundle):
        return f"{name} in parts"
    return name
