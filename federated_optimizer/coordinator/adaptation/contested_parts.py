"""Choices that have to wait: a move that is under way changes what they rest on.

Two choices that are made at once are independent unless one of them takes from the other what it
reads, or reads what the other one would end. Else two queries change places, or one moves onto
what the last reader is leaving.
"""

from collections.abc import Collection, Iterable, Mapping

from federated_optimizer.coordinator.adaptation.begun_moves import Move
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.runs.read_parts import Part
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from streamsql.wire.fragments import FragmentBundle


def is_contested(
    runs: SharedRuns,
    before: FragmentBundle,
    after: FragmentBundle,
    moves: Mapping[int, Move],
    known: Collection[int],
) -> bool:
    """Return whether a choice of queries of one run waits for moves.

    It does if it reads what nobody else will need when all moves have come about, or if a move
    that was not known reads what would end with the run otherwise.

    Work: that of the runs on which it and the moves rest, and of their readers.

    Args:
        runs: All runs.
        before: What the queries run.
        after: What they would run.
        moves: Those under way.
        known: Those that were when the choice was made; their new runs have been readers then.
    """
    old, new = parts_under(runs, before), parts_under(runs, after)
    left = {part for move in moves.values() for part in _left(runs, move)}
    stay = _Needed(runs, {move.run for move in moves.values()} | {before.query})
    if any(not stay.has_part(part) for part in left & new):
        return True
    later = [moves[number] for number in moves.keys() - known]
    joined = {part for move in later for part in parts_under(runs, move.trial.bundle)}
    own = {(before.query, fragment.id) for fragment in before.own}
    stay = _Needed(runs, {move.trial.run for move in later} | {before.query})
    return any(not stay.has_part(part) for part in joined & ((old | own) - new))


def parts_under(runs: SharedRuns, bundle: FragmentBundle) -> set[Part]:
    """Return the parts of other runs on which a bundle rests: those it reads, and those below."""
    found: set[Part] = set()
    waiting = [bundle]
    while waiting:
        for feed in waiting.pop().feeds:
            part = (feed.run, feed.source)
            if part in found:
                continue
            found.add(part)
            leader = runs.leader(feed.run)
            if leader is not None and _is_result(leader.bundle, feed.source):
                waiting.append(leader.bundle)
    return found


def _is_result(bundle: FragmentBundle, name: str) -> bool:
    return any(f.id == name and not f.consumer for f in bundle.fragments)


def _left(runs: SharedRuns, move: Move) -> set[Part]:
    """Return the parts that queries which move rest on, or run; their new run may keep some."""
    own = {(move.run, fragment.id) for fragment in move.left.own}
    return parts_under(runs, move.left) | own


class _Needed:
    """Which runs somebody needs who stays, each looked at once.

    Args:
        runs: All runs.
        but: Those that do not count.
    """

    def __init__(self, runs: SharedRuns, but: Iterable[str]) -> None:
        self._runs = runs
        self._known = dict.fromkeys(but, False)

    def has_part(self, part: Part) -> bool:
        """Return whether a fragment is needed: its run's answer is seen, or it is read."""
        run, fragment = part
        return self._is_seen(run) or any(
            map(self._has, self._runs.fed.parts(run).get(fragment, ()))
        )

    def _has(self, run: str) -> bool:
        if run not in self._known:
            # Runs read only older ones, so this comes to an end.
            readers = self._runs.fed.readers(run)
            self._known[run] = self._is_seen(run) or any(map(self._has, readers))
        return self._known[run]

    def _is_seen(self, run: str) -> bool:
        """Return whether a query has the run's answer, a trial included."""
        if not self._known.get(run, True):
            return False
        return any(q.origin != Origin.NODE for q in self._runs.live(run))
