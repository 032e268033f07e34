"""Real networks: every graph of the Internet Topology Zoo, and a recorded trace of radio links.

Zoo: all links of a graph are inserted at once, then up to 20 are deleted one by one; after each
deletion the closure is compared with networkx, which is timed beside. Trace: 44 motes over two
days; a link lives while its newest measurement of the last 30 minutes has a delivery ratio of at
least one half; the closure is compared with networkx at 20 moments. The data lies beside the
checkout (`../shared/data`) or where --data says.

    python -m benchmarks.recursive_real --quick
    python -m benchmarks.recursive_real --json --out docs/results
"""

import argparse
import json
import random
import sys
import tarfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import networkx as nx
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks._recursive.measuring import quantile
from benchmarks._recursive.product import Product
from benchmarks._recursive.workloads import REACHABLE
from gateway.connectors.replay.readers import read_k7
from streamsql.data.types import Row

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TRACE = """CREATE LINK SOURCE link (src TEXT, dst TEXT, pdr DOUBLE, ts TIMESTAMP, KEY (src, dst))
  WITH (ttl = '30 min');
WITH RECURSIVE reachable (src, dst) AS (
  SELECT src, dst FROM link
  UNION
  SELECT l.src, r.dst FROM link l JOIN reachable r ON l.dst = r.src)
SELECT src, dst FROM reachable"""
LIFE = 30 * 60 * 1_000_000
LEAST_RATIO = 0.5


def zoo(archive: Path) -> Iterator[tuple[str, list[Row]]]:
    """Yield name and directed links of every graph; parallel links once, both ways."""
    with tarfile.open(archive) as packed:
        for member in packed:
            content = packed.extractfile(member) if member.name.endswith(".graphml") else None
            if content is None:
                continue
            graph = nx.parse_graphml(content.read().decode())
            ends = {tuple(sorted((str(a), str(b)))) for a, b in graph.edges() if a != b}
            links: list[Row] = [(x, y, 1) for a, b in sorted(ends) for x, y in ((a, b), (b, a))]
            if links:
                yield Path(member.name).stem, links


def closure(links: set[tuple[Any, Any]]) -> set[Row]:
    """Return the closure by networkx."""
    graph = nx.DiGraph(list(links))
    return set(nx.transitive_closure(graph, reflexive=False).edges())


def run_graph(name: str, links: list[Row], deletions: int) -> dict[str, Any]:
    """Return figures of one graph.

    Raises:
        AssertionError: The view is not networkx' closure.
    """
    chooser = random.Random(name)
    made = Product(REACHABLE)
    start = time.perf_counter()
    made.update([("link", row, 1) for row in links])
    load = time.perf_counter() - start
    live = {(row[0], row[1]) for row in links}
    ours: list[float] = []
    peer: list[float] = []
    for row in chooser.sample(links, min(deletions, len(links))):
        start = time.perf_counter()
        made.update([("link", row, -1)])
        ours.append((time.perf_counter() - start) * 1_000)
        live.discard((row[0], row[1]))
        start = time.perf_counter()
        expected = closure(live)
        peer.append((time.perf_counter() - start) * 1_000)
        if set(made.view) != expected:
            raise AssertionError(f"{name}: another closure than networkx'")
    return {
        "links": len(links),
        "nodes": len({node for row in links for node in row[:2]}),
        "load_ms": round(load * 1_000, 2),
        "delete_p50_ms": round(quantile(ours, 0.5), 4),
        "delete_max_ms": round(max(ours), 3),
        "networkx_p50_ms": round(quantile(peer, 0.5), 4),
    }


def run_trace(recording: Path, most: int | None) -> dict[str, Any]:
    """Return figures of the link trace.

    Raises:
        AssertionError: The view is not networkx' closure at some moment.
    """
    readings = list(islice(read_k7(recording, None, LEAST_RATIO), most))
    made = Product(TRACE)
    newest: dict[tuple[Any, Any], tuple[int, bool]] = {}
    took: list[float] = []
    checks = {len(readings) * part // 20 - 1 for part in range(1, 21)}
    for number, reading in enumerate(readings):
        values: Any = reading.values
        ts = reading.ts or 0
        ends = (values["src"], values["dst"])
        row = (*ends, values.get("pdr"), ts)
        start = time.perf_counter()
        made.update([("link", row, -1 if reading.gone else 1)], at=ts)
        took.append((time.perf_counter() - start) * 1_000)
        newest[ends] = (ts, not reading.gone)
        if number in checks:
            alive = {e for e, (at, up) in newest.items() if up and at + LIFE > ts}
            if set(made.view) != closure(alive):
                raise AssertionError(f"another closure than networkx' after reading {number}")
    return {
        "readings": len(readings),
        "update_p50_ms": round(quantile(took, 0.5), 4),
        "update_p99_ms": round(quantile(took, 0.99), 3),
        "update_max_ms": round(max(took), 3),
        "seconds": round(sum(took) / 1_000, 1),
        "moments_compared": len(checks),
    }


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the recorded data")
    parser.add_argument("--quick", action="store_true", help="30 graphs and 2,000 readings")
    parser.add_argument("--out", type=Path, help="folder for real-networks.json")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    archive = options.data / "topology-zoo" / "graphml.tar.gz"
    recording = options.data / "link-traces" / "grenoble-sample.k7.gz"
    for path in (archive, recording):
        if not path.exists():
            parser.error(f"{path} is not there; say --data FOLDER")
    console = Console(stderr=True)
    graphs = list(zoo(archive))
    if options.quick:
        graphs = sorted(graphs, key=lambda graph: len(graph[1]))[:: max(len(graphs) // 30, 1)]
    found = {
        name: run_graph(name, links, 5 if options.quick else 20)
        for name, links in track(graphs, "graphs of the zoo", console=console)
    }
    with console.status("the link trace"):
        trace = run_trace(recording, 2_000 if options.quick else None)
    result = {"zoo": found, "trace": trace}
    text = json.dumps(result, indent=1) + "\n"
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "real-networks.json").write_text(text)
    if options.json:
        sys.stdout.write(text)
    else:
        show(result)


def show(result: dict[str, Any]) -> None:
    """Print tables: the zoo in fifths by size, and the trace."""
    console = Console()
    graphs = sorted(result["zoo"].items(), key=lambda graph: int(graph[1]["links"]))
    table = Table(title=f"Topology Zoo: {len(graphs)} graphs, all right", title_justify="left")
    for column in ("links", "graphs", "load ms", "delete p50 ms", "networkx p50 ms", "ratio"):
        table.add_column(column, justify="right")
    for fifth in range(5):
        part = [f for _, f in graphs[len(graphs) * fifth // 5 : len(graphs) * (fifth + 1) // 5]]
        if not part:
            continue
        load, ours, peer = (
            quantile([f[key] for f in part], 0.5)
            for key in ("load_ms", "delete_p50_ms", "networkx_p50_ms")
        )
        table.add_row(
            f"{part[0]['links']}-{part[-1]['links']}",
            str(len(part)),
            *(f"{value:.3g}" for value in (load, ours, peer, peer / ours)),
        )
    console.print(table)
    trace = ", ".join(
        f"{name.replace('_', ' ')} {value:,}" for name, value in result["trace"].items()
    )
    console.print(f"Link trace: {trace}")


if __name__ == "__main__":
    main()
