"""The protocol: queries are registered some at a time, then all configurations take a few batches.

After each round the answers of all configurations are compared, and at the end those of each with
DuckDB. A configuration that has used up its time stops to run: from then on its queries are only
planned, so that the size of its network is known to the end. One that has used up its time for
planning as well stops for good.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
        size_budget: CPU seconds after which it does not even plan any more.
        together: Configurations that register at the same time; they take batches one by one.
        duckdb: Whether DuckDB computes all answers at the end.
    """

    step: int
    updates: int
    budget: float
    size_budget: float
    together: int
    duckdb: bool


@dataclass(slots=True)
class _Runner:
    """A contestant and what it has used.

    Attributes:
        used: CPU seconds.
        registered: Queries.
        runs: False after it has stopped to run: its queries are planned only.
    """

    contestant: Contestant
    used: float = 0.0
    registered: int = 0
    runs: bool = True
    planning: tuple[float, ...] = ()
    answering: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """Its configuration."""
        return self.contestant.configuration

    def register(self, texts: Sequence[str], say: Say) -> None:
        """Register queries, and tell what that took."""
        took = self.contestant.register(texts)
        self.planning, self.answering = tuple(took["planning"]), tuple(took["answering"])
        self.registered += len(texts)
        self.used += sum(self.answering)
        done = "registered" if self.runs else "planned"
        say(f"{self.registered} queries, {self.name}: {done} ({self.used:.0f} s of CPU so far)")


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
            runners = _continuing(runners, protocol, say)
            if not runners:
                break
            part = texts[start : start + protocol.step]
            found.append(_round(runners, part, number * protocol.updates, protocol, say))
        if protocol.duckdb:
            _compare_with_duckdb(runners, say)
    return found


def _continuing(runners: Sequence[_Runner], protocol: Protocol, say: Say) -> list[_Runner]:
    """Stop those that have used up their time; return those that register further queries."""
    running = [each for each in runners if each.runs]
    stopping = [each for each in running if each.used > protocol.budget]
    if protocol.duckdb and stopping and len(stopping) == len(running):
        _compare_with_duckdb(running, say)
    for each in stopping:
        each.contestant.stop_running()  # its memory is for the others
        each.runs = False
        say(f"{each.name}: stopped at {each.registered} queries; from here on it only plans")
    planning = []
    for each in runners:
        if each.used > protocol.size_budget:
            each.contestant.close()
            say(f"{each.name}: plans no more after {each.registered} queries")
        else:
            planning.append(each)
    return planning


def _round(
    runners: Sequence[_Runner], texts: Sequence[str], first: int, protocol: Protocol, say: Say
) -> dict[str, Any]:
    with ThreadPoolExecutor(protocol.together) as pool:
        # The slowest first, so that none is left for the end.
        slowest = sorted(runners, key=lambda each: -each.used)
        for done in [pool.submit(each.register, texts, say) for each in slowest]:
            done.result()
    running = [each for each in runners if each.runs]
    updates: dict[str, list[Update]] = {each.name: [] for each in runners}
    for batch in range(first, first + protocol.updates):
        for each in _in_turn(running, batch):
            took = each.contestant.update(batch)
            updates[each.name].append(took)
            each.used += took.seconds
    figures = {each.name: each.contestant.figures() for each in runners}
    _compare({each.name: figures[each.name].pop("answers") for each in running})
    queries = runners[0].registered
    if running:
        say(f"{queries} queries: updated, equal rows in {len(running)} configurations")
    told = {
        each.name: {
            **_sizes(each, figures[each.name]),
            **(_times(each, updates[each.name], figures[each.name]) if each.runs else {}),
        }
        for each in runners
    }
    return {"queries": queries, "configurations": told}


def _in_turn(runners: Sequence[_Runner], turn: int) -> Iterator[_Runner]:
    """Yield all, each turn another one first."""
    first = turn % max(1, len(runners))
    yield from (*runners[first:], *runners[:first])


def _sizes(runner: _Runner, figures: dict[str, Any]) -> dict[str, float]:
    """Return what is written of a network after a round, whether it runs or not."""
    sizes = ("weighted", "nodes", "operators", "fragments", "runs")
    return {
        **{size: figures[size] for size in sizes},
        "plan_ms_median": round(1_000 * median(runner.planning), 3),
    }


def _times(runner: _Runner, updates: Sequence[Update], figures: dict[str, Any]) -> dict[str, Any]:
    """Return what is written of a network that runs after a round."""
    seconds = [each.seconds for each in updates]
    latencies = [1_000 * each for each in runner.answering]
    return {
        "mb": round(figures["mb"], 1),
        "update_ms": [round(1_000 * each, 3) for each in seconds],
        "update_ms_median": round(1_000 * median(seconds), 3),
        "update_ms_mean": round(1_000 * fmean(seconds), 3),
        "update_ms_max": round(1_000 * max(seconds), 3),
        "gateway_ms": round(1_000 * median(each.gateway for each in updates), 3),
        "base_ms": round(1_000 * median(each.base for each in updates), 3),
        "messages": round(fmean(each.messages for each in updates), 1),
        "bytes": round(fmean(each.bytes for each in updates)),
        "registration_ms_p50": round(quantile(latencies, 0.5), 3),
        "registration_ms_p99": round(quantile(latencies, 0.99), 3),
        "registrations_a_second": round(len(latencies) / sum(runner.answering), 1),
    }


def _compare(answers: dict[str, list[int]]) -> None:
    """Check that all configurations have the same rows."""
    if not answers:
        return
    (first, wanted), *others = answers.items()
    for name, theirs in others:
        unlike = [at for at, (a, b) in enumerate(zip(wanted, theirs, strict=True)) if a != b]
        if unlike:
            raise AssertionError(f"{name} and {first} have other rows of query {unlike[0]}")


def _compare_with_duckdb(runners: Sequence[_Runner], say: Say) -> None:
    # All that run have the same rows: one of them is enough.
    last = next((each for each in runners if each.runs), None)
    if last is None:
        return
    unlike = last.contestant.unlike_duckdb()
    if unlike:
        raise AssertionError(f"DuckDB has other rows of {len(unlike)} queries: {unlike[0]}")
    say(f"{last.registered} queries: the rows of DuckDB")
