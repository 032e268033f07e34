"""Pathway beside the product on the queries that both have, over the same batches."""

import json
import os
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks._nexmark.events import Event, events
from benchmarks._nexmark.queries import QUERIES, SOURCES
from benchmarks._recursive.measuring import quantile
from benchmarks._recursive.product import Product

SHARED = ("q1", "q2", "q3", "q4", "q12", "q17", "q20")
_SIZES = (1, 100, 10_000)


def compare(name: str, *, quick: bool) -> dict[str, Any] | None:
    """Return both sides' milliseconds a batch; None for other queries, or without Pathway.

    PATHWAY_PYTHON names the Python of an environment that has it.

    Raises:
        AssertionError: The number of rows differs.
    """
    python = os.environ.get("PATHWAY_PYTHON")
    if not python or name not in SHARED:
        return None
    counts = (20, 5, 2) if quick else (100, 20, 5)
    loads = 2 if quick else 10
    stream = events(10_000 * loads + sum(n * s for n, s in zip(counts, _SIZES, strict=True)))
    sizes = [10_000] * loads + [s for n, s in zip(counts, _SIZES, strict=True) for _ in range(n)]
    batches = [list(islice(stream, size)) for size in sizes]
    theirs = _pathway(python, name, batches, loads)
    if theirs is None:
        return None
    ours, rows = _product(name, batches)
    if rows != theirs["rows"]:
        raise AssertionError(f"{name}: {rows} rows here, {theirs['rows']} in Pathway")
    found: dict[str, Any] = {}
    least = float("inf")
    start = 0
    for size, count in zip(_SIZES, counts, strict=True):
        mine = quantile(ours[loads + start : loads + start + count], 0.5)
        peer = quantile(theirs["seconds"][start : start + count], 0.5)
        start += count
        found[f"batch_of_{size}"] = {
            "ours_ms": round(mine * 1_000, 3),
            "pathway_ms": round(peer * 1_000, 3),
            "ratio": round(peer / mine, 2),
        }
        least = min(least, peer / mine)
    return found | {"ours_over_pathway": round(least, 2)}


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


def _pathway(
    python: str, name: str, batches: list[list[Event]], loads: int
) -> dict[str, Any] | None:
    given = {
        "query": name,
        "batches": [[_flat(event) for event in batch] for batch in batches],
        "timed": [loads, len(batches)],
    }
    program = Path(__file__).with_name("pathway_program.py")
    done = subprocess.run(  # noqa: S603  (our program, with the Python the user names)
        [python, str(program)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(f"Pathway gave up on {name}: {done.stderr.strip()[-300:]}\n")
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
