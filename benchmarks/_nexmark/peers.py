"""Incremental peers beside the product on the queries that they have, over the same batches.

Pathway runs where PATHWAY_PYTHON names the Python of an environment that has it, D2TS where
D2TS_FOLDER names a folder with `node_modules/@electric-sql/d2ts`. Each is a process of its own.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks._nexmark.events import Event, events
from benchmarks._nexmark.queries import QUERIES, SOURCES
from benchmarks._recursive.measuring import quantile
from benchmarks._recursive.product import Product

SHARED = ("q1", "q2", "q3", "q4", "q12", "q17", "q20")
_SIZES = (1, 100, 10_000)
_HERE = Path(__file__).parent


def compare(name: str, *, quick: bool) -> dict[str, Any]:
    """Return per peer both sides' milliseconds a batch, and the least ratio over batch sizes.

    Nothing for other queries, and for peers that are not here.

    Raises:
        AssertionError: The number of rows differs.
    """
    peers = dict(_programs()) if name in SHARED else {}
    if not peers:
        return {}
    counts = (20, 5, 2) if quick else (100, 20, 5)
    loads = 2 if quick else 10
    stream = events(10_000 * loads + sum(n * s for n, s in zip(counts, _SIZES, strict=True)))
    sizes = [10_000] * loads + [s for n, s in zip(counts, _SIZES, strict=True) for _ in range(n)]
    batches = [list(islice(stream, size)) for size in sizes]
    ours, rows = _product(name, batches)
    found: dict[str, Any] = {}
    for peer, command in peers.items():
        theirs = _run(peer, command, name, batches, loads)
        if theirs is None:
            continue
        if rows != theirs["rows"]:
            raise AssertionError(f"{name}: {rows} rows here, {theirs['rows']} in {peer}")
        found[peer] = _beside(ours[loads:], theirs["seconds"], counts)
    return found


def _programs() -> Iterator[tuple[str, list[str]]]:
    """Yield the peers that are here, with the commands that run them."""
    python = os.environ.get("PATHWAY_PYTHON")
    if python:
        yield "pathway", [python, str(_HERE / "pathway_program.py")]
    folder, node = os.environ.get("D2TS_FOLDER"), shutil.which("node")
    if folder and node:
        yield "d2ts", [node, str(_HERE / "d2ts_program.mjs"), folder]


def _beside(ours: list[float], theirs: list[float], counts: tuple[int, ...]) -> dict[str, Any]:
    """Return both sides' medians by batch size."""
    found: dict[str, Any] = {}
    start = 0
    for size, count in zip(_SIZES, counts, strict=True):
        mine = quantile(ours[start : start + count], 0.5)
        peer = quantile(theirs[start : start + count], 0.5)
        start += count
        found[f"batch_of_{size}"] = {
            "ours_ms": round(mine * 1_000, 3),
            "theirs_ms": round(peer * 1_000, 3),
            "ratio": round(peer / mine, 2),
        }
    return found | {"least_ratio": min(part["ratio"] for part in found.values())}


def _product(name: str, batches: list[list[Event]]) -> tuple[list[float], int]:
    query = next(q for q in QUERIES if q.name == name)
    product = Product(SOURCES + query.text)
    took = []
    for batch in batches:
        changes = [(source, row, 1) for source, row in batch]
        began = time.perf_counter()
        product.update(changes)
        took.append(time.perf_counter() - began)
    return took, sum(product.view.values())


def _run(
    peer: str, command: list[str], name: str, batches: list[list[Event]], loads: int
) -> dict[str, Any] | None:
    given = {
        "query": name,
        "batches": [[_flat(event) for event in batch] for batch in batches],
        "timed": [loads, len(batches)],
    }
    done = subprocess.run(  # noqa: S603  (our program, with the interpreter that the user names)
        command,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(f"{peer} gave up on {name}: {done.stderr.strip()[-300:]}\n")
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _flat(event: Event) -> list[Any]:
    source, row = event
    match source:
        case "person":
            return [0, row[0], 0, 0, row[6], 0, row[1], row[4], row[5]]
        case "auction":
            return [1, row[0], row[7], row[8], row[5], row[6], row[1], "", ""]
        case _:
            return [2, row[0], row[1], row[2], row[5], 0, row[3], "", ""]
