"""The recursions of a fragment at one site, and their reports."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import RecursionStatistics
from stream_engine.exchange.peered_fixpoint import PeeredFixpoint
from stream_engine.operators.rows.operator import RecursiveOperator
from streamsql.algebra.operators import Fixpoint
from streamsql.wire.bundles.partitioning import HomeOwner
from streamsql.wire.fragments import Fragment
from streamsql.wire.messages import RecursionReport

_MOST = 2**63 - 1


def fixpoints_at(
    site: str, fragment: Fragment, epoch: int, first_life: int, interrupted: Callable[[], bool]
) -> Callable[[Fixpoint], RecursiveOperator]:
    """Return the factory of the recursions of a fragment at a site."""
    sites = fragment.sites

    def make(node: Fixpoint) -> RecursiveOperator:
        # 90 modules, a quarter of all that a gateway could load: most sites run no recursion.
        from stream_engine.recursion.program.fixpoint_options import RecursionOptions
        from stream_engine.recursion.strategies import recursive_operator

        options = RecursionOptions(interrupted=interrupted)
        if fragment.homes:
            options = replace(options, owner=HomeOwner(dict(fragment.homes)))
        if sites == (site,):
            return recursive_operator(node, site=site, sites=sites, epoch=epoch, options=options)

        def begin(life: int) -> RecursiveOperator:
            return recursive_operator(node, site=site, sites=sites, epoch=life, options=options)

        return PeeredFixpoint(begin, site=site, sites=sites, epoch=epoch, first_life=first_life)

    return make


def take_replays_wanted(recursions: Iterable[PeeredFixpoint]) -> list[str]:
    """Remove and return the peers whose snapshot one of the recursions needs."""
    wanted: dict[str, None] = {}
    for recursion in recursions:
        wanted.update(recursion.replays_wanted)
        recursion.replays_wanted = {}
    return list(wanted)


def recursion_reports(
    circuits: Mapping[str, Circuit], peered: Mapping[str, PeeredFixpoint]
) -> Iterator[RecursionReport]:
    """Yield the reports of the recursions of a query, for EXPLAIN ANALYZE.

    Args:
        circuits: By fragment.
        peered: The recursions with peers, by fragment and number: "f1/0".
    """
    for name, circuit in circuits.items():
        for number, done in enumerate(circuit.recursion_statistics()):
            shared = peered.get(f"{name}/{number}")
            yield _report(done, 1 if shared is None else shared.lives)


def _report(done: RecursionStatistics, lives: int) -> RecursionReport:
    """Return the report of a recursion and its number of incarnations."""
    work = done.work
    return RecursionReport(
        name=done.name,
        description=done.description,
        leaf_rows=done.leaf_rows,
        leaf_changes=done.leaf_changes,
        view_rows=_bounded(done.view_rows),
        view_changes=done.view_changes,
        settles=work.settles,
        rounds=work.rounds,
        most_rounds=done.most_rounds,
        derivations=work.derivations,
        rederived=work.rederived,
        recomputed=work.recomputed,
        received_rows=work.received_rows,
        sent_rows=work.sent_rows,
        sent_kills=work.sent_kills,
        lives=lives,
        trace=tuple((_bounded(come), _bounded(gone)) for come, gone in work.trace.last),
        derived=_bounded(work.trace.derived),
        deleted=_bounded(work.trace.deleted),
        beyond=_bounded(done.beyond),
        allowed=done.allowed,
    )


def _bounded(count: int) -> int:
    """Return at most what a message can carry: copies of rows may be more."""
    return min(count, _MOST)
