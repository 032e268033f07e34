"""W2 and W3: regions of triggered sensors, and the nearest free machine of a building."""

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks._recursive.measuring import quantile
from benchmarks._recursive.product import Change, Product
from benchmarks._recursive.targets import Outcome
from benchmarks._recursive.workloads import (
    NEAREST,
    REGION,
    BuildingTrace,
    SensorTrace,
    w2,
    w3,
)

NEAR = 20.0
_NEARLY = 0.000_1
"""Seconds before it is due at which to wait for an update without sleeping."""


def region_changes(trace: SensorTrace) -> Iterator[Change]:
    """Yield the changes of a sensor trace, one an update."""
    for sign, sensors in ((1, trace.triggered), (-1, trace.untriggered)):
        for sensor in sensors:
            yield "triggered", (sensor, *trace.places[sensor]), sign


def region_product(trace: SensorTrace, choice: str = "") -> Product:
    """Return the product with the seeds in place."""
    made = Product(f"{REGION} WITH ({choice})" if choice else REGION)
    made.update([("region_seed", (region, seed), 1) for region, seed in enumerate(trace.seeds)])
    return made


class BreadthFirst:
    """Regions by a search from every seed after every update: the recompute to beat."""

    def __init__(self, trace: SensorTrace) -> None:
        self._seeds = trace.seeds
        places = trace.places
        self._near = [
            [b for b, q in enumerate(places) if b != a and _closer(p, q)]
            for a, p in enumerate(places)
        ]
        self._on: set[int] = set()
        self.view: set[tuple[int, int]] = set()

    def update(self, change: Change) -> None:
        """Trigger or untrigger a sensor and search again."""
        sensor: Any = change[1][0]
        (self._on.add if change[2] > 0 else self._on.discard)(sensor)
        view: set[tuple[int, int]] = set()
        for region, seed in enumerate(self._seeds):
            seen = {seed} & self._on
            todo = list(seen)
            while todo:
                for other in self._near[todo.pop()]:
                    if other in self._on and other not in seen:
                        seen.add(other)
                        todo.append(other)
            view.update((region, member) for member in seen)
        self.view = view


def _closer(p: tuple[int, int], q: tuple[int, int]) -> bool:
    return (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 < NEAR * NEAR


def run_regions(spacing: int, rounds: int) -> tuple[dict[str, Any], list[Outcome]]:
    """Return the figures of the sensor grid, and the outcome W2.

    Raises:
        AssertionError: The product's regions are not those of the search.
    """
    trace = w2(spacing)
    took: dict[str, list[float]] = {}
    for _ in range(rounds):
        search = BreadthFirst(trace)
        ours = {name: region_product(trace, choice) for name, choice in _REGION_CHOICES.items()}
        changes = list(region_changes(trace))
        gc.collect()
        for number, change in enumerate(changes):
            _clock(took, "breadth-first recompute", search.update, change)
            for name, made in ours.items():
                _clock(took, name, made.update, [change])
            if number == len(changes) // 2 or number % 50 == 0:
                for name, made in ours.items():
                    if set(made.view) != search.view:
                        raise AssertionError(f"{name}: other regions after update {number}")
    figures = {name: _summary(values) for name, values in took.items()}
    peer, own = figures["breadth-first recompute"]["p50_ms"], figures["default"]["p50_ms"]
    return {trace.name: figures}, [Outcome("W2", peer / own)]


_REGION_CHOICES = {"default": "", "ranked": "strategy = 'ranked'"}


def nearest_product(trace: BuildingTrace, choice: str = "") -> Product:
    """Return the product with all corridors and machines in place."""
    made = Product(f"{NEAREST} WITH ({choice})" if choice else NEAREST)
    made.update(
        [("corridor", row, 1) for row in trace.corridors]
        + [("free", (machine, machine), 1) for machine in trace.machines]
    )
    return made


class ScipyNearest:
    """The way from every point to its nearest free machine, by scipy after every update."""

    def __init__(self, trace: BuildingTrace) -> None:
        self._points = trace.points
        self._corridors = {(a, b): metres for a, b, metres in trace.corridors}
        self._free = dict.fromkeys(trace.machines)
        self.distances: Any = None

    def update(self, changes: tuple[tuple[str, tuple[int, ...], int], ...]) -> None:
        """Apply an update and compute all distances."""
        from scipy.sparse import csr_array  # noqa: PLC0415
        from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415

        for source, row, sign in changes:
            if source == "free":
                self._free.update({row[0]: None}) if sign > 0 else self._free.pop(row[0])
            elif sign > 0:
                self._corridors[row[0], row[1]] = row[2]
            else:
                del self._corridors[row[0], row[1]]
        ends = np.array(list(self._corridors), dtype=np.int32)
        metres = np.fromiter(self._corridors.values(), float, len(self._corridors))
        graph = csr_array((metres, (ends[:, 1], ends[:, 0])), shape=(self._points, self._points))
        free = np.fromiter(self._free, dtype=np.int64)
        self.distances = dijkstra(graph, indices=free, min_only=True)


def run_nearest(
    points: int, count: int, sampled: int, choices: dict[str, str]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the figures of a building, and p50 of every contestant in milliseconds.

    Args:
        points: Routing points.
        count: Updates of ours.
        sampled: Updates that scipy computes too; the views are compared at the last of them.
        choices: Ways to run the product, by name.

    Raises:
        AssertionError: The product's distances are not scipy's.
    """
    trace = w3(points, count)
    took: dict[str, list[float]] = {}
    for name, choice in choices.items():
        ours = nearest_product(trace, choice)
        peer = ScipyNearest(trace)
        peer.update(())
        gc.collect()
        for number, update in enumerate(trace.updates):
            _clock(took, name, ours.update, update)
            if number < sampled:
                _clock(took, "recompute, scipy", peer.update, update)
            if number == sampled - 1:
                _compare(name, ours, peer)
    figures = {name: _summary(values) for name, values in took.items()}
    for name in choices:
        figures[name]["updates_per_second"] = round(1_000 / (sum(took[name]) / len(took[name])))
    return {trace.name: figures}, {name: figures[name]["p50_ms"] for name in figures}


def _compare(name: str, ours: Product, peer: ScipyNearest) -> None:
    expected = {p: d for p, d in enumerate(peer.distances.tolist()) if d != float("inf")}
    rows: Any = ours.view
    found = {row[0]: float(row[1]) for row in rows}
    if found != expected:
        raise AssertionError(f"{name}: other distances than scipy")


def paced(points: int, seconds: float, rate: int = 1_000) -> list[float]:
    """Return the milliseconds from the moment each update was due until its view was right."""
    trace = w3(points, int(seconds * rate))
    ours = nearest_product(trace)
    late: list[float] = []
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    for number, update in enumerate(trace.updates):
        due = start + number / rate
        while (now := time.perf_counter()) < due:
            if due - now > _NEARLY:  # who only spins is throttled where priority is real-time
                time.sleep(due - now - _NEARLY)
        ours.update(update)
        late.append((time.perf_counter() - due) * 1_000)
    gc.unfreeze()
    return late


def run_building(*, quick: bool) -> tuple[dict[str, Any], list[Outcome]]:
    """Return the figures of the buildings, and the outcomes W3a to W3c."""
    sizes = (1_000, 10_000) if quick else (1_000, 10_000, 100_000)
    figures: dict[str, Any] = {}
    ratios: dict[int, float] = {}
    for points in sizes:
        sampled = 20 if quick else max(20, min(200, 2_000_000 // points))
        found, medians = run_nearest(points, 500 if quick else 3_000, sampled, _WAYS)
        figures |= found
        ratios[points] = medians["recompute, scipy"] / medians["default"]
    outcomes = [Outcome("W3b1", ratios.get(10_000)), Outcome("W3b2", ratios.get(100_000))]
    rates = [
        figures[f"W3 {points} points"]["default"]["updates_per_second"]
        for points in sizes
        if points == 100_000
    ]
    outcomes.append(Outcome("W3a", rates[0] if rates else None))
    late = paced(10_000 if quick else 100_000, 3 if quick else 60)
    figures["paced, 1,000 updates a second"] = _summary(late)
    outcomes.append(Outcome("W3c", None if quick else quantile(late, 0.99)))
    return figures, outcomes


_WAYS = {"default": ""}


def _clock(took: dict[str, list[float]], name: str, call: Callable[[Any], Any], given: Any) -> None:
    start = time.perf_counter()
    call(given)
    took.setdefault(name, []).append((time.perf_counter() - start) * 1_000)


def _summary(values: list[float]) -> dict[str, float]:
    return {
        "p50_ms": round(quantile(values, 0.5), 4),
        "mean_ms": round(sum(values) / len(values), 4),
        "p99_ms": round(quantile(values, 0.99), 3),
        "max_ms": round(max(values), 3),
    }
