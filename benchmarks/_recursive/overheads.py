"""What provenance costs, what aggregate selection saves, and how wide annotations get."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks._recursive.measuring import product, quantile, same_updates, session
from benchmarks._recursive.spaces import region_changes, region_product
from benchmarks._recursive.targets import Outcome
from benchmarks._recursive.workloads import LinkTrace, w1, w2
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from streamsql.algebra.choices import Strategy
from streamsql.algebra.operators import Best, Fixpoint
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.syntax import parse_script
from streamsql.syntax.statements import CreateSource, Query

SITES = tuple(f"g{number}" for number in range(12))

BOTH = """CREATE LINK SOURCE link (src TEXT, dst TEXT, cost INTEGER);
WITH RECURSIVE path (src, dst, hops, cost) AS (
  SELECT src, dst, 1, cost FROM link
  UNION
  SELECT l.src, p.dst, p.hops + 1, l.cost + p.cost FROM link l JOIN path p ON l.dst = p.src)
SELECT src, dst, {wanted} FROM path GROUP BY src, dst"""


PATHS = BOTH.format(wanted="MIN(hops) AS hops, MIN(cost) AS cost")


def run_overheads(*, quick: bool, rounds: int, cap: float) -> tuple[dict[str, Any], list[Outcome]]:
    """Return the figures, and the outcomes P9, A1 and B7."""
    trace = w1(200 if quick else 400, sparse=quick)
    whole = LinkTrace(f"{trace.name}, inserting only", trace.links, (), trace.nodes)
    ways = {
        "set execution": product("reachable", "strategy = 'set'"),
        "witnesses": product("reachable", "strategy = 'absorption', ship = 'witness'"),
        "absorption, bdd": product("reachable", "strategy = 'absorption', annotations = 'bdd'"),
        "ranked": product("reachable", "strategy = 'ranked'"),
    }
    timings = session(whole, ways, rounds=rounds, cap=cap)
    figures: dict[str, Any] = {
        whole.name: {n: {"insert": t.insert.summary()} for n, t in timings.items()}
    }
    witnesses, plain = same_updates(timings["witnesses"].insert, timings["set execution"].insert)
    outcomes = [Outcome("P9", quantile(witnesses.all(), 0.5) / quantile(plain.all(), 0.5))]
    selected = selections(trace)
    figures["aggregate selection, rows shipped between 12 sites"] = selected
    one = min(selected[alone]["rows"] for alone in ("MIN(hops)", "MIN(cost)"))
    outcomes.append(Outcome("A1", one / selected["both together"]["rows"]))
    if not quick:
        figures["regions at 5 m under absorption"] = width = wide_regions()
        outcomes.append(Outcome("B7", max(w["peak_MB"] for w in width.values())))
    return figures, outcomes


def selections(trace: LinkTrace) -> dict[str, dict[str, float]]:
    """Return rows and bytes shipped to load a net, with aggregates pushed one by one or together.

    Without any, cyclic nets have infinitely many paths: the recursion does not end.
    """

    def shipped(wanted: str) -> dict[str, float]:
        ensemble = Ensemble(
            recursion_of(BOTH.format(wanted=wanted)),
            SITES,
            RecursionOptions(strategy=Strategy.ABSORPTION),
            max_steps=100_000_000,
        )
        nodes = sorted({link[0] for link in trace.links})
        place = {node: SITES[number % len(SITES)] for number, node in enumerate(nodes)}
        for link in trace.links:
            ensemble.apply(place[link[0]], 0, {link: 1})
        start = time.perf_counter()
        for site in SITES:
            ensemble.step(site)
        ensemble.run()
        rows = sum(operator.counters.sent_rows for operator in ensemble.operators.values())
        return {
            "rows": rows,
            "bytes": ensemble.bytes_sent,
            "seconds": round(time.perf_counter() - start, 2),
        }

    hops, cost = shipped("MIN(hops) AS hops"), shipped("MIN(cost) AS cost")
    return {
        "MIN(hops)": hops,
        "MIN(cost)": cost,
        "MIN(hops), then MIN(cost)": {key: hops[key] + cost[key] for key in hops},
        "both together": shipped("MIN(hops) AS hops, MIN(cost) AS cost"),
    }


def recursion_of(script: str) -> Fixpoint:
    """Return the recursion of a script as it is bound.

    Raises:
        AssertionError: No aggregate was pushed into it.
    """
    catalog = Catalog()
    plan: Any = None
    for statement in parse_script(script):
        if isinstance(statement, CreateSource):
            catalog.define(define(statement, catalog))
        elif isinstance(statement, Query):
            plan = bind_query(statement, catalog).plan
    while not isinstance(plan, Fixpoint):
        plan = plan.inputs[0]
    if plan.selection is None or not all(isinstance(b, Best) for b in plan.selection.bests):
        raise AssertionError("aggregate selection was not pushed into the recursion")
    return plan


def wide_regions() -> dict[str, dict[str, float]]:
    """Return time and peak memory of regions where every sensor has 37 neighbours.

    Each in a process of its own, whose resident memory is what the kernel says: what libraries
    allocate outside Python is in it, and so is the interpreter.

    Raises:
        AssertionError: Untriggering every sensor does not empty the view.
    """
    spawn = multiprocessing.get_context("spawn")
    found: dict[str, dict[str, float]] = {}
    for annotations in ("dnf", "bdd"):
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            found[annotations] = pool.submit(_wide_regions, annotations).result()
    return found


def _wide_regions(annotations: str) -> dict[str, float]:
    trace = w2(5)
    made = region_product(trace, f"strategy = 'absorption', annotations = '{annotations}'")
    before = _peak_resident()
    start = time.perf_counter()
    for change in region_changes(trace):
        made.update([change])
    seconds = time.perf_counter() - start
    if made.view:
        raise AssertionError(f"{annotations}: {len(made.view)} rows are left")
    peak = _peak_resident()
    return {
        "peak_MB": round(peak / 1e6, 1),
        "before_MB": round(before / 1e6, 1),
        "seconds": round(seconds, 1),
    }


def _peak_resident() -> int:
    """Return the most resident memory this process has had, in bytes.

    The kernel's count of this program: `ru_maxrss` also has that of whoever started it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kilobytes) * 1024
