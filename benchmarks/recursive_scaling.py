"""Does the work of a change stay the same while the view grows a thousandfold?

Networks of 100 to 100,000 nodes in which a change touches as much as in the smallest one: stubs of
8 nodes that are not connected with each other (reachable), and a building whose machines are as
dense everywhere (nearest free machine). Flat lines mean that work follows the change.

    python -m benchmarks.recursive_scaling --quick
    python -m benchmarks.recursive_scaling --out docs/results
"""

import argparse
import gc
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks._recursive.measuring import quantile
from benchmarks._recursive.product import Change, Product
from benchmarks._recursive.spaces import nearest_product
from benchmarks._recursive.workloads import REACHABLE, w3
from streamsql.data.types import Row

SIZES = (100, 1_000, 10_000, 100_000)
STUB = 8


def stubs(nodes: int, seed: int = 1) -> list[Row]:
    """Return links both ways inside separate stubs: a tree and four more links each."""
    chooser = random.Random(seed)
    rows: list[Row] = []
    for stub in range(nodes // STUB):
        names = [f"s{stub}n{number}" for number in range(STUB)]
        pairs = {(chooser.randrange(number), number) for number in range(1, STUB)}
        while len(pairs) < STUB + 3:
            a, b = sorted(chooser.sample(range(STUB), 2))
            pairs.add((a, b))
        for a, b in sorted(pairs):
            rows += [(names[a], names[b], 1), (names[b], names[a], 1)]
    return rows


def link_changes(rows: list[Row], count: int, seed: int = 2) -> list[list[Change]]:
    """Return updates that each delete a link or insert it again."""
    chooser = random.Random(seed)
    updates: list[list[Change]] = []
    for _ in range(count // 2):
        row = chooser.choice(rows)
        updates += [[("link", row, -1)], [("link", row, 1)]]
    return updates


def timed(made: Product, updates: Any) -> list[float]:
    """Return the milliseconds of every update."""
    took: list[float] = []
    gc.collect()
    gc.freeze()
    for update in updates:
        start = time.perf_counter()
        made.update(update)
        took.append((time.perf_counter() - start) * 1_000)
    gc.unfreeze()
    return took


def run(nodes: int, count: int) -> dict[str, dict[str, float]]:
    """Return the figures of one size, by workload."""
    rows = stubs(nodes)
    links = Product(REACHABLE)
    links.update([("link", row, 1) for row in rows])
    found = {"reachable in stubs": _summary(links, timed(links, link_changes(rows, count)))}
    del links
    building = w3(nodes, count)
    nearest = nearest_product(building)
    found["nearest free machine"] = _summary(nearest, timed(nearest, building.updates))
    return found


def _summary(made: Product, took: list[float]) -> dict[str, float]:
    return {
        "rows": len(made.view),
        "p50_ms": round(quantile(took, 0.5), 4),
        "p90_ms": round(quantile(took, 0.9), 4),
        "p99_ms": round(quantile(took, 0.99), 3),
    }


def draw(found: dict[str, dict[str, dict[str, float]]], folder: Path) -> None:
    """Write the chart as SVG and PNG."""
    import matplotlib as mpl  # noqa: PLC0415  (slow to import, needed only here)

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "scaling"
    figure, panel = plt.subplots(figsize=(7, 4.5), layout="constrained")
    sizes = [int(size) for size in found]
    for workload in next(iter(found.values())):
        for share, style in (("p50_ms", "-"), ("p90_ms", "--")):
            values = [figures[workload][share] for figures in found.values()]
            panel.plot(sizes, values, style, marker="o", label=f"{workload}, {share[:3]}")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("nodes")
    panel.set_ylabel("one update (ms)")
    panel.grid(visible=True, alpha=0.3)
    panel.legend(fontsize="small")
    panel.set_title("Work follows the change, not the view")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "scaling.svg", metadata={"Date": None})
    figure.savefig(folder / "scaling.png", dpi=90)
    plt.close(figure)


def main() -> None:
    """Run all sizes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="up to 10,000 nodes, fewer updates")
    parser.add_argument("--out", type=Path, help="folder for scaling.json and the chart")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    sizes = SIZES[:3] if options.quick else SIZES
    count = 200 if options.quick else 2_000
    console = Console(stderr=True)
    found = {str(size): run(size, count) for size in track(sizes, "sizes", console=console)}
    text = json.dumps(found, indent=1) + "\n"
    if options.out is not None:
        draw(found, options.out)
        (options.out / "scaling.json").write_text(text)
    if options.json:
        sys.stdout.write(text)
        return
    table = Table(title="One update in milliseconds", title_justify="left")
    for column in ("nodes", "workload", "rows of the view", "p50", "p90", "p99"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    for size, workloads in found.items():
        for workload, figures in workloads.items():
            values = [f"{value:,.4g}" for name, value in figures.items() if name != "rows"]
            table.add_row(f"{int(size):,}", workload, f"{figures['rows']:,}", *values)
    Console().print(table)


if __name__ == "__main__":
    main()
