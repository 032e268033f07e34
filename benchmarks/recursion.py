"""How long does one link change take: our fixpoint, recomputing, or delete-and-rederive?

All links of a transit-stub network (4 transit nodes, 12 stubs of 8 nodes, 400 directed links) are
inserted one by one in random order, then 80 are deleted one by one. After every update the view can
be read. Engines take turns in one process, so only the ratios of one run mean something; every
engine must end with the same view. Times are CPU time, which a busy machine distorts least.

    python -m benchmarks.recursion [--quick] [--links 400] [--rounds 3] [--json]
"""

import argparse
import gc
import importlib.util
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from benchmarks._delete_rederive import DeleteRederive
from stream_engine.recursion.absorption import Shipping
from stream_engine.recursion.fixpoint import FixpointOperator
from stream_engine.recursion.options import RecursionOptions
from stream_engine.recursion.strategies import recursive_operator
from stream_engine.recursion.testing import Ensemble, cheapest_path, reachable
from streamsql.algebra.operators import Fixpoint
from streamsql.data.types import Row

Link = tuple[str, str, int]
Update = tuple[int, Link]
TRANSIT_MS, ACCESS_MS, STUB_MS = 50, 10, 2
GATEWAYS = 12


def transit_stub(links: int, seed: int) -> list[Link]:
    """Return directed links (source, target, ms): 100 nodes a domain, 400 links a domain."""
    choice = random.Random(seed)
    found: dict[frozenset[int], int] = {}

    def connect(a: int, b: int, cost: int) -> None:
        if a != b:
            found.setdefault(frozenset((a, b)), cost)

    stubs: list[list[int]] = []
    domains = max(1, round(links / 400))
    for domain in range(domains):
        first = domain * 100
        transit = range(first, first + 4)
        for a in transit:
            for b in transit:
                connect(a, b, TRANSIT_MS)
        for number in range(12):
            start = first + 4 + 8 * number
            stub = list(range(start, start + 8))
            choice.shuffle(stub)
            connect(transit[number % 4], choice.choice(stub), ACCESS_MS)
            for i in range(1, 8):
                connect(stub[i], stub[choice.randrange(i)], STUB_MS)
            stubs.append(stub)
        connect(first, (domain + 1) % domains * 100 + 1, TRANSIT_MS)
    while len(found) < links // 2:
        a, b = choice.sample(choice.choice(stubs), 2)
        connect(a, b, STUB_MS)
    both = []
    for pair, cost in found.items():
        a, b = sorted(pair)
        both += [(f"n{a}", f"n{b}", cost), (f"n{b}", f"n{a}", cost)]
    return both[:links] if len(both) > links else both


def trace(links: int, deletions: int, seed: int) -> list[Update]:
    """Return insertions of all links, then deletions of some, both in random order."""
    choice = random.Random(seed)
    rows = transit_stub(links, seed)
    choice.shuffle(rows)
    return [(1, row) for row in rows] + [(-1, row) for row in choice.sample(rows, deletions)]


class Engine(Protocol):
    """Keeps a view under single updates."""

    def update(self, sign: int, link: Link) -> None:
        """Insert (+1) or delete (-1) a link; afterwards the view is right."""

    def view(self) -> set[Row]:
        """Return the rows of the view."""


class Ours:
    """The fixpoint operator at one site."""

    def __init__(self, node: Fixpoint, options: RecursionOptions) -> None:
        self._operator = FixpointOperator(node, site="s", sites=("s",), epoch=1, options=options)

    def update(self, sign: int, link: Link) -> None:
        """Apply and settle."""
        self._operator.apply(0, {link: sign})
        self._operator.settle()

    def view(self) -> set[Row]:
        """Return the rows of the view."""
        return set(self._operator.state_rows())


class Strategy:
    """A strategy of the product at one site."""

    def __init__(self, node: Fixpoint, strategy: str) -> None:
        options = RecursionOptions(strategy=strategy)
        self._operator = recursive_operator(node, site="s", sites=("s",), epoch=1, options=options)

    def update(self, sign: int, link: Link) -> None:
        """Apply and settle."""
        self._operator.apply(0, {link: sign})
        self._operator.settle()

    def view(self) -> set[Row]:
        """Return the rows of the view."""
        return set(self._operator.state_rows())


class Recompute:
    """Evaluates everything from scratch after every update."""

    def __init__(self, closure: Callable[[dict[Link, None]], Any], rows: Callable[[Any], set[Row]]):
        self._links: dict[Link, None] = {}
        self._closure = closure
        self._rows = rows
        self._result: Any = None

    def update(self, sign: int, link: Link) -> None:
        """Change the links and evaluate."""
        if sign > 0:
            self._links[link] = None
        else:
            del self._links[link]
        self._result = self._closure(self._links)

    def view(self) -> set[Row]:
        """Return the rows of the view."""
        return self._rows(self._result)


def search_closure(links: dict[Link, None]) -> dict[str, set[str]]:
    """Return what every node reaches, by a search from each."""
    after: dict[str, list[str]] = {}
    for source, target, _ in links:
        after.setdefault(source, []).append(target)
    result: dict[str, set[str]] = {}
    for start, targets in after.items():
        seen: set[str] = set()
        todo = list(targets)
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(after.get(node, ()))
        result[start] = seen
    return result


def pairs(closure: dict[str, set[str]]) -> set[Row]:
    """Return a closure as rows."""
    return {(source, target) for source, targets in closure.items() for target in targets}


def recomputers() -> dict[str, Callable[[], Engine]]:
    """Return the ways to recompute that this machine can import."""
    found: dict[str, Callable[[], Engine]] = {
        "recompute, own search": lambda: Recompute(search_closure, pairs)
    }
    if importlib.util.find_spec("networkx"):
        found["recompute, networkx"] = lambda: Recompute(networkx_closure, pairs)
    if importlib.util.find_spec("rustworkx"):
        found["recompute, rustworkx"] = lambda: Recompute(rustworkx_closure, pairs)
    if importlib.util.find_spec("scipy"):
        found["recompute, scipy"] = lambda: Recompute(scipy_closure, pairs)
    return found


def networkx_closure(links: dict[Link, None]) -> dict[str, set[str]]:
    """Return what every node reaches, by networkx."""
    import networkx as nx  # noqa: PLC0415  (imported only where it is installed)

    graph = nx.DiGraph((source, target) for source, target, _ in links)
    result = {}
    for node in graph:
        reached = nx.descendants(graph, node)
        if any(node in graph[other] for other in reached):
            reached.add(node)
        result[node] = reached
    return result


def rustworkx_closure(links: dict[Link, None]) -> dict[str, set[str]]:
    """Return what every node reaches, by rustworkx."""
    import rustworkx as rx  # noqa: PLC0415

    names = list(dict.fromkeys(n for source, target, _ in links for n in (source, target)))
    number = {name: i for i, name in enumerate(names)}
    graph = rx.PyDiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from_no_data([(number[s], number[t]) for s, t, _ in links])
    result: dict[str, set[str]] = {}
    for name in names:
        successors = graph.successor_indices(number[name])
        reached = {names[j] for i in successors for j in rx.descendants(graph, i)}
        result[name] = reached | {names[i] for i in successors}
    return result


def scipy_closure(links: dict[Link, None]) -> dict[str, set[str]]:
    """Return what every node reaches, by scipy: all unweighted shortest paths."""
    import numpy as np  # noqa: PLC0415
    from scipy.sparse import csr_array  # noqa: PLC0415
    from scipy.sparse.csgraph import (  # noqa: PLC0415
        shortest_path,
    )

    names = list(dict.fromkeys(n for source, target, _ in links for n in (source, target)))
    number = {name: i for i, name in enumerate(names)}
    ends = ([number[s] for s, _, _ in links], [number[t] for _, t, _ in links])
    graph = csr_array((np.ones(len(links)), ends), shape=(len(names), len(names)))
    near = np.isfinite(shortest_path(graph, unweighted=True)).astype(float)
    closed = (graph @ near) > 0
    return {name: {names[j] for j in np.nonzero(closed[i])[0]} for i, name in enumerate(names)}


def engines() -> dict[str, Callable[[], Engine]]:
    """Return everything that is compared."""
    ours: dict[str, Callable[[], Engine]] = {
        f"fixpoint, lazy, {annotations}": partial(
            Ours, reachable(), RecursionOptions(annotations=annotations)
        )
        for annotations in ("dnf", "bdd")
    }
    # The engine for any program is slower than one written for reachability; ratios to the latter
    # claim less.
    baselines: dict[str, Callable[[], Engine]] = {
        "delete and rederive, by hand": DeleteRederive,
        "delete and rederive, any program": partial(Strategy, reachable(), "dred"),
    }
    return ours | baselines | recomputers()


def timed(engine: Engine, updates: list[Update]) -> tuple[list[float], list[float]]:
    """Return milliseconds of the last fifth of the insertions, and of all deletions."""
    inserts: list[float] = []
    deletes: list[float] = []
    gc.collect()
    for sign, link in updates:
        start = time.process_time()
        engine.update(sign, link)
        elapsed = (time.process_time() - start) * 1_000
        (inserts if sign > 0 else deletes).append(elapsed)
    return inserts[-len(inserts) // 5 :], deletes


def percentile(values: list[float], share: float) -> float:
    """Return a percentile of a non-empty list."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def summary(values: list[float]) -> dict[str, float]:
    """Return median, 99th percentile and mean."""
    return {
        "p50": percentile(values, 0.5),
        "p99": percentile(values, 0.99),
        "mean": statistics.fmean(values),
    }


def compare(updates: list[Update], rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Run all engines in rotating order.

    Raises:
        AssertionError: Two engines end with different views.
    """
    made = engines()
    names = list(made)
    inserts: dict[str, list[float]] = {name: [] for name in names}
    deletes: dict[str, list[float]] = {name: [] for name in names}
    views: dict[str, set[Row]] = {}
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            engine = made[name]()
            new_inserts, new_deletes = timed(engine, updates)
            inserts[name] += new_inserts
            deletes[name] += new_deletes
            views[name] = engine.view()
    reference = views["recompute, own search"]
    wrong = [name for name, view in views.items() if view != reference]
    if wrong:
        raise AssertionError(f"wrong view: {', '.join(wrong)}")
    return {n: {"insert": summary(inserts[n]), "delete": summary(deletes[n])} for n in names}


def bulk_loads(links: list[Link]) -> dict[str, float]:
    """Return milliseconds to load everything at once, and to delete one link after that."""
    result: dict[str, float] = {}
    for name, node in (("reachable", reachable()), ("cheapest path", cheapest_path())):
        operator = FixpointOperator(node, site="s", sites=("s",), epoch=1)
        operator.apply(0, dict.fromkeys(links, 1))
        start = time.process_time()
        operator.settle()
        result[name] = (time.process_time() - start) * 1_000
    return result


def shipped(links: list[Link], deletions: list[Link]) -> dict[str, dict[str, float]]:
    """Return rows and bytes between gateways to insert and to delete, per way of shipping.

    Eager shipping is bounded by the width of annotations, else it would not finish.
    """
    sites = tuple(f"g{i}" for i in range(GATEWAYS))
    result: dict[str, dict[str, float]] = {}
    for shipping in (Shipping.LAZY,):
        ensemble = Ensemble(reachable(), sites, RecursionOptions(shipping=shipping))
        phases = {"insert": [(1, row) for row in links], "delete": [(-1, r) for r in deletions]}
        for phase, updates in phases.items():
            before = ensemble.bytes_sent
            for sign, row in updates:
                site = sites[int(row[0][1:]) % GATEWAYS]
                ensemble.apply(site, 0, {row: sign})
                ensemble.step(site)
                ensemble.run()
            result.setdefault(str(shipping), {})[phase] = ensemble.bytes_sent - before
    return result


def report(found: dict[str, Any]) -> None:
    """Print the tables."""
    print(
        f"{found['nodes']} nodes, {found['links']} links, {found['deletions']} deletions, "
        f"{found['rounds']} rounds, load {found['load']}"
    )
    print(f"{'':32}{'insert p50':>12}{'p99':>9}{'delete p50':>12}{'p99':>9}  (CPU ms)   vs ours")
    ours = found["engines"]["fixpoint, lazy, dnf"]["delete"]["p50"]
    for name, phases in found["engines"].items():
        insert, delete = phases["insert"], phases["delete"]
        ratio = delete["p50"] / ours
        print(
            f"{name:32}{insert['p50']:12.3f}{insert['p99']:9.2f}{delete['p50']:12.3f}"
            f"{delete['p99']:9.2f}{ratio:17.2f}"
        )
    for name, milliseconds in found["bulk_load_ms"].items():
        print(f"load all at once, {name}: {milliseconds:.0f} ms")
    for name, phases in found.get("bytes", {}).items():
        print(
            f"{GATEWAYS} gateways, {name}: {phases['insert'] / 1e6:.2f} MB inserting, "
            f"{phases['delete'] / 1e6:.2f} MB deleting"
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a small net, once")
    parser.add_argument("--bytes", action="store_true", help="also count bytes between 12 gateways")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    links, rounds = (200, 1) if options.quick else (options.links, options.rounds)
    updates = trace(links, links // 5, options.seed)
    rows = [row for sign, row in updates if sign > 0]
    found: dict[str, Any] = {
        "nodes": len({row[0] for row in rows}),
        "links": len(rows),
        "deletions": len(updates) - len(rows),
        "rounds": rounds,
        "load": round(os.getloadavg()[0], 1),
        "python": sys.version.split()[0],
        "engines": compare(updates, rounds),
        "bulk_load_ms": bulk_loads(rows),
    }
    if options.bytes:
        found["bytes"] = shipped(rows, [row for sign, row in updates if sign < 0])
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        report(found)


if __name__ == "__main__":
    main()
