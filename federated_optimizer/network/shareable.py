"""Equal runs: which bundles compute the same, and why one is run for a single query only.

Sharing is right when a query that begins now has the answer of one that has run for long. So every
operator has to be a function of what its sources hold now, and the sites have to hold it already.
"""

from collections.abc import Iterator
from hashlib import sha256

from federated_optimizer.canonical.exact_cache import exactly_cached
from streamsql.algebra.operators import (
    Fixpoint,
    OnClose,
    Plan,
    RecursiveReference,
    RemoteSource,
    Scan,
    ScanPart,
    SourceKind,
    StreamWindow,
    ToStream,
    walk_plan,
)
from streamsql.algebra.streams import Emit, keeps_history
from streamsql.catalog.system import is_site_source, is_system_table
from streamsql.wire.bundles.closure_prints import closure_prints, is_kept
from streamsql.wire.codec import encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

_NOT_BY_ITSELF = (RemoteSource, Fixpoint, RecursiveReference)

REFUSED = "WITH (shared = 'no') says so"


def fingerprint(bundle: FragmentBundle) -> str:
    """Return a name of what a bundle computes where, the same for equal bundles of any query."""
    said = (bundle.computed, bundle.schema, bundle.emit, bundle.units)
    return sha256(encode_packed(said)).hexdigest()


def may_give(fragment: Fragment) -> bool:
    """Return whether others may read a fragment that a run has: a leaf, or its result."""
    return not fragment.consumer or fragment.engine != Engine.BASE


def fragment_prints(bundle: FragmentBundle) -> dict[str, str]:
    """Return names of what the fragments compute whose rows are at a base site for others, by id.

    These are leaves, results, and copies of results of other bundles. A leaf reads nothing but
    sources, at gateways or at the static engine, and delivers to base sites: these receive the rows
    whoever reads them there. A result, and a copy of it, is at one base site.
    """
    names = [f.id for f in bundle.fragments if _is_at_one_base(f) or _is_leaf(f, bundle)]
    prints = closure_prints(bundle) if names else {}
    return {name: prints[name] for name in names}


def _is_at_one_base(fragment: Fragment) -> bool:
    return fragment.engine == Engine.BASE and len(fragment.sites) == 1 and is_kept(fragment)


def _is_leaf(fragment: Fragment, bundle: FragmentBundle) -> bool:
    if not fragment.consumer or not fragment.sites or fragment.engine == Engine.BASE:
        return False
    readers = map(bundle.fragment, bundle.readers(fragment.id))
    if any(reader.engine != Engine.BASE for reader in readers):
        return False
    return not any(isinstance(node, _NOT_BY_ITSELF) for node in walk_plan(fragment.plan))


def delivered_fragments(bundle: FragmentBundle) -> Iterator[Fragment]:
    """Yield the fragments of gateways or the static engine that deliver to base sites alone.

    These receive the rows whoever reads them there. What is below a fragment that another run has
    is left out: nobody runs it for this bundle.
    """
    by_id = {fragment.id: fragment for fragment in bundle.fragments}
    near, readers_of = run_or_read(bundle), bundle.readers_of_all()
    for fragment in bundle.fragments:
        if fragment.engine == Engine.BASE or not (fragment.consumer and fragment.sites):
            continue
        readers = {by_id[name].engine for name in readers_of[fragment.id]}
        if readers == {Engine.BASE} and fragment.id in near:
            yield fragment


def run_or_read(bundle: FragmentBundle) -> frozenset[str]:
    """Return the fragments that sites run for a bundle, or read of other runs, by id."""
    by_id = {fragment.id: fragment for fragment in bundle.fragments}
    if not bundle.feeds:
        return frozenset(by_id)
    fed = {feed.fragment for feed in bundle.feeds}
    found: set[str] = set()
    waiting = [fragment.id for fragment in bundle.fragments if not fragment.consumer]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if name not in fed:
            nodes = walk_plan(by_id[name].plan)
            waiting.extend(n.fragment for n in nodes if isinstance(n, RemoteSource))
    return frozenset(found)


def why_alone(bundle: FragmentBundle) -> str:
    """Return why a bundle can be read by one query only, in words; empty: by any number.

    The time matters to the answer of such a query: one that begins now would see something else.
    """
    if bundle.fills:
        return f"its windows begin with what the lake has of {', '.join(bundle.fills)}"
    if bundle.emit != Emit.RELATION:
        return "a stream of changes begins with its query"
    return next(filter(None, map(_why_alone, bundle.fragments)), "")


@exactly_cached(4_096)
def _why_alone(fragment: Fragment) -> str:
    # Registration asks several times, and bundles have copies of what they read.
    return next((reason for _node, reason in _reasons(fragment)), "")


def reasons_alone(bundle: FragmentBundle) -> Iterator[tuple[Plan, Fragment, str]]:
    """Yield the operators whose rows rest on more than what sources hold now, and why."""
    for fragment in bundle.fragments:
        for node, reason in _reasons(fragment):
            yield node, fragment, reason


def _reasons(fragment: Fragment) -> Iterator[tuple[Plan, str]]:
    for node in walk_plan(fragment.plan):
        reason = _reason(node, fragment)
        if reason:
            yield node, reason


def _reason(node: Plan, fragment: Fragment) -> str:
    match node:
        case Scan():
            return _reason_of_scan(node, fragment)
        case ToStream() | StreamWindow():
            return "a stream of changes begins with its query"
        case OnClose():
            return "which windows have closed counts from the start of a query"
        case _ if keeps_history(node):
            return f"{type(node).__name__} keeps what was before"
        case _:
            return ""


def _reason_of_scan(scan: Scan, fragment: Fragment) -> str:
    if is_system_table(scan.source) or is_site_source(scan.source):
        return f"{scan.source} says of each query what it does"
    if scan.history is not None:
        return f"it reads the past of {scan.source}, which it does when it starts"
    if scan.is_log or scan.part != ScanPart.ROWS:
        advice = "; with KEY or ttl they would be kept" if scan.is_log else ""
        return (
            f"sites keep no readings of {scan.source}: "
            f"what a query has seen counts from its start{advice}"
        )
    if fragment.engine == Engine.BASE and scan.kind != SourceKind.TABLE:
        return f"the base site reads {scan.source} itself, from the start of a query on"
    return ""
