"""CPU time from a statement's text to the fragments of its sites."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from sqlglot.optimizer import optimize

from benchmarks._optimizer.gate_worlds import SCHEMA, TWELVE, catalog_of
from federated_optimizer import Topology, colocation_of, normalize
from federated_optimizer.cutting.placing import place
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import (
    SourceFacts,
    Statistics,
)
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.syntax import (
    CreateDisplay,
    CreateFunction,
    CreateSource,
    CreateView,
    Query,
    parse_script,
    parse_statement,
)
from streamsql.wire.codec import encode_packed
from ui.pages.examples import BUILDING

ROOT = SCHEMA.parent.parent.parent
STEPS = ("parse", "bind", "normalize", "choose", "place", "encode")
_FENCE = re.compile(r"^```sql *(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)

BESIDE = {
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
"""Statements that are measured beside sqlglot's optimizer."""

OF_MACHINES = (
    "MachineLoad", "EnergyMeter", "Process", "SeatSensor", "Machines", "MachineSoftware"
)  # fmt: skip
OF_ROOMS = ("RoomSensor", "Temperature", "RoomReservation", "Rooms")


@dataclass(frozen=True, slots=True)
class Timed:
    """A query that was planned: CPU milliseconds by step."""

    name: str
    steps: dict[str, float]

    @property
    def whole(self) -> float:
        """From the text to the bytes of the fragments."""
        return sum(self.steps.values())


def of_building(repeats: int, *, most: int | None = None) -> list[Timed]:
    """Return times of the queries of map, pages and documentation, three gateways, one base."""
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"), library=True)
    found = []
    for name, text, known in list(_statements(catalog))[:most]:
        found.append(_timed(name, text, known, _topology(known, ("gw-1", "gw-2", "gw-3")), repeats))
    return found


def of_ten_relations(repeats: int) -> list[Timed]:
    """Return times of joins of ten relations, twelve gateways, one to three bases."""
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"), library=True)
    found = []
    for name, text in _large().items():
        for bases in (("base",), ("base", "base-2", "base-3")):
            topology = _topology(catalog, TWELVE, bases)
            title = f"{name}, {len(bases)} base{'s' * (len(bases) > 1)}"
            found.append(_timed(title, text, catalog, topology, repeats))
    return found


def beside_sqlglot(repeats: int) -> dict[str, dict[str, float]]:
    """Return times by statement, and those of sqlglot's optimizer on the same parsed tree."""
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"), library=True)
    topology = _topology(catalog, ("gw-1", "gw-2", "gw-3"))
    schema = _schema_for_sqlglot(catalog)
    found = {}
    for name, text in BESIDE.items():
        ours = _timed(name, text, catalog, topology, repeats)
        tree = _query(text).tree
        peer = _milliseconds(lambda tree=tree: optimize(tree.copy(), schema=schema), repeats)  # type: ignore[misc]
        found[name] = {
            **ours.steps,
            "text to fragments": ours.whole,
            "sqlglot optimize": peer,
            "ratio": ours.whole / peer,
        }
    return found


def figures(timed: list[Timed]) -> dict[str, Any]:
    """Return quantiles, and the slowest queries."""
    ordered = sorted(timed, key=lambda each: each.whole)
    return {
        "queries": len(ordered),
        "p50 ms": round(_quantile(ordered, 0.5), 1),
        "p95 ms": round(_quantile(ordered, 0.95), 1),
        "most ms": round(ordered[-1].whole, 1),
        "slowest": [
            {"query": each.name, **{step: round(took, 1) for step, took in each.steps.items()}}
            for each in ordered[:-4:-1]
        ],
    }


def _quantile(ordered: list[Timed], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)].whole


def _statements(catalog: Catalog) -> Iterator[tuple[str, str, Catalog]]:
    """Yield name, text and catalog of each query of the building."""
    for path in sorted((ROOT / "ui" / "map" / "queries" / "building").glob("*.sql")):
        yield f"map: {path.stem}", path.read_text(encoding="utf-8"), catalog
    for example in BUILDING:
        yield f"page: {example.title}", example.text, catalog
    for page in sorted((ROOT / "docs").glob("*.md")):
        for match in _FENCE.finditer(page.read_text(encoding="utf-8")):
            if match[1] in ("", "kept"):
                line = page.read_text(encoding="utf-8").count("\n", 0, match.start()) + 1
                yield from _of_block(f"{page.name}:{line}", match[2])


def _of_block(place: str, block: str) -> Iterator[tuple[str, str, Catalog]]:
    """Yield the queries of a block of the documentation; its definitions hold in it."""
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"), library=True)
    for statement in parse_script(block):
        if isinstance(statement, CreateSource | CreateView | CreateFunction | CreateDisplay):
            catalog.define(define(statement, catalog), replace=True)
        elif isinstance(statement, Query):
            yield place, statement.text, catalog


def _large() -> dict[str, str]:
    """Return joins of ten relations: over machines and rooms, as star and chain, and set-like."""
    machines = [f"{name} m{n}" for n, name in enumerate((*OF_MACHINES, *OF_MACHINES[:4]))]
    star = " AND ".join(f"m{n}.mid = m0.mid" for n in range(1, 10))
    chain = " AND ".join(f"m{n}.mid = m{n - 1}.mid" for n in range(1, 10))
    rooms = [
        f"{name} r{n}" for n, name in enumerate((*OF_ROOMS, *OF_ROOMS, "SeatSensor", "Machines"))
    ]
    in_rooms = " AND ".join(f"r{n}.rid = r0.rid" for n in range(1, 10))
    both = [*machines[:6], *(f"{name} r{n}" for n, name in enumerate(OF_ROOMS))]
    mixed = " AND ".join(
        [*(f"m{n}.mid = m0.mid" for n in range(1, 6)), "r0.rid = m3.rid",
         *(f"r{n}.rid = r0.rid" for n in range(1, 4))]
    )  # fmt: skip
    narrow = "m0.cpu > 0.5 AND m1.watts > 100.0"
    return {
        "ten of machines, star": f"SELECT m0.mid FROM {', '.join(machines)} WHERE {star}",
        "ten of machines, chain": f"SELECT m9.mid FROM {', '.join(machines)} WHERE {chain}",
        "ten of rooms, star": f"SELECT r0.rid FROM {', '.join(rooms)} WHERE {in_rooms}",
        "six of machines, four of rooms": f"SELECT m0.mid FROM {', '.join(both)} WHERE {mixed}",
        "the same with filters": f"SELECT m0.mid FROM {', '.join(both)} WHERE {mixed} AND {narrow}",
        "the same in groups": (
            f"SELECT r0.rid, COUNT(*) AS n FROM {', '.join(both)} WHERE {mixed} AND {narrow} "
            "GROUP BY r0.rid"
        ),
        "a union of 60": " UNION ".join(
            f"SELECT rid FROM Temperature WHERE celsius > {n}.0" for n in range(60)
        ),
    }


def _topology(
    catalog: Catalog, gateways: tuple[str, ...], bases: tuple[str, ...] = ("base",)
) -> Topology:
    names = frozenset(source.name for source in catalog.sources)
    return Topology(dict.fromkeys(gateways, names), bases=bases, colocation=colocation_of(catalog))


def _timed(name: str, text: str, catalog: Catalog, topology: Topology, repeats: int) -> Timed:
    statistics = Statistics(
        sources={source.name.lower(): SourceFacts(100.0, 2.0) for source in catalog.sources}
    )
    query = _query(text)
    bound = bind_query(query, catalog)
    ready = normalize(bound.plan, topology)
    taken = Search(ready, topology, statistics).taken(bound.asked).taken

    def placed() -> object:
        return place(ready, topology, query="q1", text=text, statistics=statistics, taken=taken)

    bundle = placed()
    steps: dict[str, Callable[[], object]] = {
        "parse": lambda: parse_statement(text),
        "bind": lambda: bind_query(query, catalog),
        "normalize": lambda: normalize(bound.plan, topology),
        "choose": lambda: Search(ready, topology, statistics).taken(bound.asked),
        "place": placed,
        "encode": lambda: encode_packed(bundle),
    }
    return Timed(name, {step: _milliseconds(work, repeats) for step, work in steps.items()})


def _milliseconds(work: Callable[[], object], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return median(times) * 1000


def _query(text: str) -> Query:
    statement = parse_statement(text)
    inner = getattr(statement, "inner", statement)
    if not isinstance(inner, Query):
        raise TypeError(f"{text!r} is no query")
    return inner


def _schema_for_sqlglot(catalog: Catalog) -> dict[str, object]:
    """Return columns of sources, tables and the views the statements read."""
    columns: dict[str, object] = {
        d.name: {f.name: str(f.dtype) for f in d.schema.fields}
        for d in (*catalog.sources, *catalog.tables)
    }
    for name in ("freemachines", "hotregion", "reachable"):
        bound = bind_query(_query(f"SUBSCRIBE TO {name}"), catalog)
        columns[name] = {f.name: str(f.dtype) for f in bound.schema.fields}
    return columns
