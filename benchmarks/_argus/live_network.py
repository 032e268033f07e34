"""A gateway with the stream and a base site, into which queries are registered one by one."""

import gc
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from benchmarks._argus.arriving_rows import DAY, NOVEMBER_2002, Stream
from benchmarks._argus.configurations import CONFIGURATIONS
from benchmarks._argus.counted_facts import counted_facts
from benchmarks._argus.duckdb_answers import differing, duckdb_over
from benchmarks._argus.network_size import size_of
from federated_optimizer import Topology
from federated_optimizer.registering.registration_terms import Planning
from stream_engine.simulation.network import CONSOLE, Network
from stream_engine.site.step_result import StepResult
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, Row
from streamsql.syntax import CreateSource, parse_script
from streamsql.wire.fragments import FragmentBundle

GATEWAY, BASE = "gateway", "base"
NOW = NOVEMBER_2002 + 500 * DAY
"""When the history has arrived; the dates of rows are values like any other."""
_MOST_ACTIONS = 10_000_000


class _Reliable(Network):
    """Loses nothing, so nothing is asked for twice; counts the time of each site's steps."""

    def __init__(self, sites: Sequence[str]) -> None:
        super().__init__(sites)
        self.seconds = dict.fromkeys(sites, 0.0)

    def step(self, site: str) -> StepResult:
        began = time.process_time()
        result = super().step(site)
        self.seconds[site] += time.process_time() - began
        return result

    def _repair(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Update:
    """The cost of a batch of rows.

    Attributes:
        seconds: CPU until the last row of all answers is there, the network's own messages too.
        gateway: CPU of the steps of the gateway.
        base: CPU of the steps of the base site.
        messages: Between sites.
        bytes: Between sites.
    """

    seconds: float
    gateway: float
    base: float
    messages: int
    bytes: int


class LiveNetwork:
    """A network of queries with data in it.

    Args:
        stream: Its history is there before the first query.
        configuration: How queries share.
    """

    def __init__(self, stream: Stream, configuration: str) -> None:
        self._source = source_of(stream)
        catalog = Catalog()
        catalog.define(self._source)
        self._counts: dict[str, int] = {}
        make = CONFIGURATIONS[configuration]
        self._registry = make(catalog, planning_over(stream), self._counted)
        self._stream = stream
        self._process = psutil.Process()
        gc.collect()
        self._least = self._process.memory_info().rss
        self._net = _Reliable((GATEWAY, BASE))
        self._net.declare(GATEWAY, self._source.scan())
        self._net.advance(NOW)
        self._ingest(stream.history)
        self._given = list(stream.history)
        self._texts: list[str] = []
        self._runs: list[str] = []
        self._bundles: dict[str, FragmentBundle] = {}
        self._is_running = True

    def register(self, texts: Sequence[str]) -> dict[str, Any]:
        """Register queries; return CPU seconds to plan each, and to plan and answer it.

        Older queries that move because of one are part of it.
        """
        planning, answering = [], []
        for text in texts:
            began = time.process_time()
            registered = self._registry.register(text)
            planned = time.process_time()
            self._bundles.update({bundle.query: bundle for bundle in registered.bundles})
            if self._is_running:
                self._run(registered.bundles)
            self._end(registered.ended)
            answered = time.process_time()
            self._runs = [registered.moved.get(run, run) for run in self._runs]
            self._texts.append(text)
            self._runs.append(registered.run)
            planning.append(planned - began)
            answering.append(answered - began)
        return {"planning": planning, "answering": answering}

    def _run(self, bundles: Sequence[FragmentBundle]) -> None:
        """Deploy bundles, and wait until their answers are there."""
        for bundle in bundles:
            self._net.install(bundle)
            self._counts.pop(bundle.query, None)
        self._settle()

    def _end(self, runs: Sequence[str]) -> None:
        for run in runs:
            del self._bundles[run]
            self._counts.pop(run, None)
            if self._is_running:
                self._net.uninstall(run)
        if runs and self._is_running:
            self._settle()

    def stop_running(self) -> None:
        """Give up all rows; queries are only planned from here on, by what is estimated."""
        self._is_running = False
        self._net = _Reliable((GATEWAY, BASE))
        self._given.clear()
        self._counts.clear()
        gc.collect()

    def update(self, number: int) -> Update:
        """Ingest a batch, and wait until all answers are there."""
        self._counts.clear()
        rows = self._stream.batches[number]
        net = self._net
        sites, messages, size = dict(net.seconds), *self._sent()
        began = time.process_time()
        net.advance(net.now + MICROSECONDS)
        self._ingest(rows)
        took = time.process_time() - began
        self._given += rows
        messages_now, size_now = self._sent()
        return Update(
            took,
            net.seconds[GATEWAY] - sites[GATEWAY],
            net.seconds[BASE] - sites[BASE],
            messages_now - messages,
            size_now - size,
        )

    def figures(self) -> dict[str, Any]:
        """Return size, memory and a mark of each answer, the same for equal rows in any child.

        Only the size where nothing runs any more.
        """
        sizes = {**asdict(size_of(self._bundles.values())), "runs": len(self._bundles)}
        if not self._is_running:
            return sizes
        gc.collect()
        return {
            **sizes,
            "mb": (self._process.memory_info().rss - self._least) / 1e6,
            "answers": [hash(frozenset(self._answer(run).items())) for run in self._runs],
        }

    def unlike_duckdb(self) -> list[str]:
        """Return the queries whose rows are not those of DuckDB over all rows so far."""
        asked = dict(zip(self._texts, map(self._answer, self._runs), strict=True))
        with duckdb_over(self._source, self._given) as duck:
            return differing(duck, asked.items())

    def _counted(self, run: str) -> int | None:
        """Return how many rows the result of a run has; None where nobody has counted them."""
        if not self._is_running or run not in self._bundles or self._bundles[run].silent:
            return None
        if run not in self._counts:
            self._counts[run] = sum(self._answer(run).values())
        return self._counts[run]

    def _answer(self, run: str) -> Delta:
        return self._net.result(run)

    def _ingest(self, rows: Sequence[Row]) -> None:
        self._net.ingest(GATEWAY, self._source.name, events_of(self._source, rows))
        self._settle()

    def _settle(self) -> None:
        self._net.settle(limit=_MOST_ACTIONS)
        if self._net.failures:
            raise RuntimeError(str(self._net.failures[0]))

    def _sent(self) -> tuple[int, int]:
        """Return messages and bytes between sites so far."""
        traffic = self._net.traffic
        between = [pair for pair in traffic.messages if CONSOLE not in pair]
        return (
            sum(traffic.messages[pair] for pair in between),
            sum(traffic.bytes[pair] for pair in between),
        )


def events_of(source: SourceDefinition, rows: Iterable[Row]) -> list[SourceEvent]:
    """Return the events of rows, each at the time that it says."""
    found = []
    for row in rows:
        time = None if source.time_column is None else row[source.time_column]
        if not isinstance(time, int):
            raise TypeError(f"{row} of {source.name} has no event time")
        found.append(SourceEvent(row, time))
    return found


def planning_over(stream: Stream) -> Planning:
    """Return the sites of a stream, and what they have counted of it."""
    source = source_of(stream)
    topology = Topology({GATEWAY: frozenset({source.name})})
    return Planning(topology, counted_facts(stream, source, GATEWAY, NOW))


def source_of(stream: Stream) -> SourceDefinition:
    """Return the definition of a stream's source."""
    (statement,) = parse_script(stream.definition)
    if not isinstance(statement, CreateSource):
        raise TypeError(f"{stream.definition} defines no source")
    defined = define(statement, Catalog())
    if not isinstance(defined, SourceDefinition):
        raise TypeError(f"{stream.definition} defines no source")
    return defined
