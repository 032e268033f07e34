"""The local executor of stored tables: its smallest evaluation, and rows a second beyond it."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from deploy.calibration.rounds import Measurement, measurement, without_collections
from streamsql.algebra.operators import Plan
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.syntax import CreateSource, Query, parse_script, parse_statement

ROWS = 20_000
ROUNDS = 5
_SCRIPT = """
CREATE TABLE small (id INTEGER, k INTEGER, name TEXT) WITH (source = 'csv', path = 'small.csv');
CREATE TABLE large (id INTEGER, k INTEGER, name TEXT) WITH (source = 'csv', path = 'large.csv');
"""
_TEXT = "SELECT k, COUNT(*) AS n FROM {} WHERE id >= 0 GROUP BY k"


def executor_times(rounds: int = ROUNDS) -> Iterator[Measurement]:
    """Yield seconds of the smallest evaluation, and rows that are read a second beyond it.

    Args:
        rounds: At least two.
    """
    # Imported here because it loads Arrow, which the other measurements do not need.
    from static_engine.evaluation.local_executor import LocalExecutor  # noqa: PLC0415
    from static_engine.sources.table_locations import Locations  # noqa: PLC0415
    from static_engine.tables.table_store import TableStore  # noqa: PLC0415

    catalog = Catalog(())
    for statement in parse_script(_SCRIPT):
        if isinstance(statement, CreateSource):
            catalog.define(define(statement, catalog))
    with tempfile.TemporaryDirectory(prefix="pando-calibrate-") as name:
        folder = Path(name)
        store = TableStore(Locations(folder), folder / "tables")
        for table, count in (("small", 10), ("large", ROWS)):
            lines = (f"{n},{n % 50},thing {n}\n" for n in range(count))
            (folder / f"{table}.csv").write_text("id,k,name\n" + "".join(lines), encoding="utf-8")
            definition = catalog.find(table)
            if isinstance(definition, SourceDefinition):
                store.load(definition)
        executor = LocalExecutor(store)
        floors, speeds = list[float](), list[float]()
        for number in range(rounds + 1):
            with without_collections():
                floor = _seconds(executor.collect, _plan(catalog, "small"))
                whole = _seconds(executor.collect, _plan(catalog, "large"))
            if number:  # the first one reads files
                floors.append(floor)
                speeds.append(ROWS / max(whole - floor, 1e-6))
    yield measurement("local_floor", floors)
    yield measurement("local_rows", speeds)


def _plan(catalog: Catalog, table: str) -> Plan:
    statement = parse_statement(_TEXT.format(table))
    if not isinstance(statement, Query):
        raise TypeError(table)
    return bind_query(statement, catalog).plan


def _seconds(evaluate: Callable[[Plan], object], plan: Plan) -> float:
    began = time.perf_counter()
    evaluate(plan)
    return time.perf_counter() - began
