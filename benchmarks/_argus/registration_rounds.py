"""The protocol: queries are registered some at a time, then all configurations take a few batches.

After each round the answers of all configurations are compared, and at the end those of each with
DuckDB. A configuration that has used up its time registers no more; until then it counts.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from benchmarks._argus.arriving_rows import Stream
from benchmarks._argus.forked_network import Contestant
from benchmarks._argus.live_network import Update
from benchmarks._recursive.measuring import quantile

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Protocol:
    """The settings of the measurement.

    Attributes:
        step: Queries of a round.
        updates: Batches after each round.
        budget: CPU seconds that a configuration may take to register and to update.
        duckdb: Whether DuckDB computes all answers at the end.
    """

    step: int
    updates: int
    budget: float
    duckdb: bool


@dataclass(slots=True)
class _Runner:
    """A contestant and what it has used."""

    contestant: Contestant
    used: float = 0.0
    registered: int = 0
    planning: tuple[float, ...] = ()
    answering: tuple[float, ...] = ()


def batches_needed(queries: int, protocol: Protocol) -> int:
    """Return how many batches the rounds take."""
    return -(-queries // protocol.step) * protocol.updates


def rounds(
    stream: Stream,
    texts: Sequence[str],
    configurations: Sequence[str],
    protocol: Protocol,
    say: Say,
) -> list[dict[str, Any]]:
    """Return the figures of each round, by configuration.

    Raises:
        AssertionError: Two configurations, or one and DuckDB, have different rows.
    """
    with ExitStack() as stack:
        runners = [
            _Runner(stack.enter_context(closing(Contestant(name, stream))))
            for name in configurations
        ]
        found = []
        for number, start in enumerate(range(0, len(texts), protocol.step)):
            running = [each for each in runners if each.used <= protocol.budget]
            for each in runners:
                if each not in running:
                    each.contestant.close()  # its memory is for the others
            if not running:
                break
            first = number * protocol.updates
            part = texts[start : start + protocol.step]
            found.append(_round(running, part, range(first, first + protocol.updates), say))
        if protocol.duckdb:
            _compare_with_duckdb(runners, say)
    return found


def _round(
    runners: Sequence[_Runner], texts: Sequence[str], batches: range, say: Say
) -> dict[str, Any]:
    for each in runners:
        took = each.contestant.register(texts)
        each.planning, each.answering = tuple(took["planning"]), tuple(took["answering"])
        each.registered += len(texts)
        each.used += sum(each.answering)
        say(f"{each.registered} queries, {each.contestant.configuration}: registered")
    updates: dict[str, list[Update]] = {each.contestant.configuration: [] for each in runners}
    for batch in batches:
        for each in _in_turn(runners, batch):
            took_update = each.contestant.update(batch)
            updates[each.contestant.configuration].append(took_update)
            each.used += took_update.seconds
    figures = {each.contestant.configuration: each.contestant.figures() for each in runners}
    _compare(figures)
    queries = runners[0].registered
    say(f"{queries} queries: updated, equal rows")
    return {
        "queries": queries,
        "configurations": {
            each.contestant.configuration: _told(
                each,
                updates[each.contestant.configuration],
                figures[each.contestant.configuration],
            )
            for each in runners
        },
    }


def _in_turn(runners: Sequence[_Runner], turn: int) -> Iterator[_Runner]:
    """Yield all, each turn another one first."""
    first = turn % len(runners)
    yield from (*runners[first:], *runners[:first])


def _told(runner: _Runner, updates: Sequence[Update], figures: dict[str, Any]) -> dict[str, float]:
    """Return what is written of a configuration after a round."""
    seconds = [each.seconds for each in updates]
    latencies = [1_000 * each for each in runner.answering]
    return {
        "weighted": figures["weighted"],
        "nodes": figures["nodes"],
        "operators": figures["operators"],
        "fragments": figures["fragments"],
        "runs": figures["runs"],
        "mb": round(figures["mb"], 1),
        "update_ms_median": round(1_000 * median(seconds), 3),
        "update_ms_mean": round(1_000 * fmean(seconds), 3),
        "update_ms_max": round(1_000 * max(seconds), 3),
        "gateway_ms": round(1_000 * median(each.gateway for each in updates), 3),
        "base_ms": round(1_000 * median(each.base for each in updates), 3),
        "messages": round(fmean(each.messages for each in updates), 1),
        "bytes": round(fmean(each.bytes for each in updates)),
        "plan_ms_median": round(1_000 * median(runner.planning), 3),
        "registration_ms_p50": round(quantile(latencies, 0.5), 3),
        "registration_ms_p99": round(quantile(latencies, 0.99), 3),
        "registrations_a_second": round(len(latencies) / sum(runner.answering), 1),
    }


def _compare(figures: dict[str, dict[str, Any]]) -> None:
    """Check that all configurations have the same rows."""
    (first, wanted), *others = ((name, each.pop("answers")) for name, each in figures.items())
    for name, answers in others:
        unlike = [at for at, (a, b) in enumerate(zip(wanted, answers, strict=True)) if a != b]
        if unlike:
            raise AssertionError(f"{name} and {first} have other rows of query {unlike[0]}")


def _compare_with_duckdb(runners: Sequence[_Runner], say: Say) -> None:
    # Those that have as many queries as the last have the same rows: one of them is enough.
    most = max(each.registered for each in runners)
    last = next(each for each in runners if each.registered == most)
    unlike = last.contestant.unlike_duckdb()
    if unlike:
        raise AssertionError(f"DuckDB has other rows of {len(unlike)} queries: {unlike[0]}")
    say(f"{most} queries: the rows of DuckDB")
