"""How good is the chosen plan, and how long from a statement's text to the fragments of its sites?

    python benchmarks/optimizer.py [--quick] [--json]

**Choice.** Per query of the papers, of the sample building and of twenty generated ones: every plan
(at most twelve: those that push and ship everything, and the cheapest by estimate) is forced in a
simulated federation of three or twelve gateways, with readings of devices for 100 s, of which the
last 30 are measured: bytes and messages between sites, with 48 bytes for the header of a message.
All plans must give the rows of the reference evaluator, and of DuckDB for generated queries; the
exit status says so. Regret is what the chosen plan sent over what the best one did, a byte a second
added to both. The optimizer knows rates and sizes of sources and the share that filters pass, as
a running federation counts them, and nothing of distinct values. Two runs give the same figures.

**Planning time.** Per statement of the sample building: CPU milliseconds (median) to parse, bind,
normalize (rules and grouping of joins), choose a plan and place it over three gateways, a base site
and the static engine, and to encode the bundle. Beside them, in the same run,
`sqlglot.optimizer.optimize` on the same parsed tree: the rewrites of a general SQL optimizer,
without types of ours, placement or recursion semantics. It does not look into views, so statements
over views are less work for it.

How to read times: only ratios within one run mean anything. `ratio` is our whole way from text to
bytes over sqlglot's optimize alone. The first call of anything pays for imports and caches and is
left out.
"""

import argparse
import json
import time
from collections.abc import Callable
from statistics import median

from sqlglot.optimizer import optimize

from benchmarks._optimizer.forced_plans import outcome
from benchmarks._optimizer.questions import SCHEMA, catalog_of, questions
from benchmarks._optimizer.regrets import figures, printed
from federated_optimizer import Topology, colocation_of, normalize
from federated_optimizer.cutting.placing import place
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.syntax import Query, parse_statement
from streamsql.wire.codec import encode_packed

SEED = 1

STATEMENTS = {
    "filter": "SELECT mid, cpu, task FROM MachineLoad WHERE cpu > 0.5",
    "windowed average": """
        SELECT rid, AVG(celsius) AS c FROM Temperature [RANGE 1 MINUTE] GROUP BY rid""",
    "example 14": """
        SELECT m.mid, sr.rid FROM Machines m, MachineSoftware ms, SeatSensor ss, RoomSensor sr
        WHERE ms.software = 'Word' AND ms.mid = m.mid AND ss.mid = m.mid AND ss.weightLevel < 5.0
          AND sr.rid = ss.rid AND sr.status = 'open'""",
    "free machines with LaTeX": """
        SELECT f.mid, f.host, f.point FROM FreeMachines f
        JOIN MachineSoftware s ON s.mid = f.mid WHERE s.software = 'LaTeX'""",
    "reachable": "SELECT * FROM reachable WHERE src = 'n1'",
    "hot regions": "SELECT regionid, COUNT(*) AS n FROM HotRegion GROUP BY regionid",
}

STEPS = ("parse", "bind", "normalize", "choose", "place", "encode")


def _schema_for_sqlglot(catalog: Catalog) -> dict[str, object]:
    """Columns of sources, tables and the views the statements read."""
    columns: dict[str, object] = {
        d.name: {f.name: str(f.dtype) for f in d.schema.fields}
        for d in (*catalog.sources, *catalog.tables)
    }
    for name in ("freemachines", "hotregion", "reachable"):
        bound = bind_query(_query(f"SUBSCRIBE TO {name}"), catalog)
        columns[name] = {f.name: str(f.dtype) for f in bound.schema.fields}
    return columns


def _query(text: str) -> Query:
    statement = parse_statement(text)
    inner = getattr(statement, "inner", statement)
    if not isinstance(inner, Query):
        raise TypeError(f"{text!r} is no query")
    return inner


def _milliseconds(work: Callable[[], object], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return median(times) * 1000


def measure(repeats: int) -> dict[str, dict[str, float]]:
    """Return milliseconds by statement and step, and the ratio to sqlglot."""
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"), library=True)
    names = frozenset(source.name for source in catalog.sources)
    gateways = dict.fromkeys(("gw-1", "gw-2", "gw-3"), names)
    topology = Topology(gateways, colocation=colocation_of(catalog))
    schema = _schema_for_sqlglot(catalog)
    table: dict[str, dict[str, float]] = {}
    for name, text in STATEMENTS.items():
        query = _query(text)
        bound = bind_query(query, catalog)
        ready = normalize(bound.plan, topology)
        bundle = place(ready, topology, query="q1", text=text)
        ways: dict[str, Callable[[], object]] = {
            "parse": lambda text=text: parse_statement(text),  # type: ignore[misc]
            "bind": lambda query=query: bind_query(query, catalog),  # type: ignore[misc]
            "normalize": lambda plan=bound.plan: normalize(plan, topology),  # type: ignore[misc]
            "choose": lambda ready=ready: Search(ready, topology, NOTHING_KNOWN).taken(),  # type: ignore[misc]
            "place": lambda ready=ready: place(ready, topology, query="q1"),  # type: ignore[misc]
            "encode": lambda bundle=bundle: encode_packed(bundle),  # type: ignore[misc]
            "sqlglot optimize": lambda query=query: optimize(  # type: ignore[misc]
                query.tree.copy(), schema=schema
            ),
        }
        times = {way: _milliseconds(work, repeats) for way, work in ways.items()}
        times["text to fragments"] = sum(times[step] for step in STEPS)
        times["ratio"] = times["text to fragments"] / times["sqlglot optimize"]
        table[name] = times
    return table


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status: 1 if two plans of a query gave different rows."""
    parser = argparse.ArgumentParser(
        description="Regret of chosen plans, and time from a statement to its fragments."
    )
    parser.add_argument("--quick", action="store_true", help="fewer queries and repetitions")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    seconds = 10.0 if options.quick else 30.0
    found = figures([outcome(each, seconds, SEED) for each in questions(quick=options.quick)])
    table = measure(3 if options.quick else 50)
    status = 0 if found["same_rows"] else 1
    if options.json:
        print(json.dumps({"choice": found, "planning": table}, indent=2))
        return status
    print(printed(found) + "\n")
    columns = (*STEPS, "text to fragments", "sqlglot optimize", "ratio")
    print(f"{'CPU ms':<26}" + "".join(f"{column:>19}" for column in columns))
    for name, times in table.items():
        print(f"{name:<26}" + "".join(f"{times[column]:19.2f}" for column in columns))
    return status


if __name__ == "__main__":
    raise SystemExit(main())
