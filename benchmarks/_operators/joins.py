"""Joins of every kind: cost of a change, beside DuckDB starting anew, and memory.

    python -m benchmarks._operators.joins [--only NAME …] [--rows N] [--json]

A state of n rows is n/2 rows on each side (n/3 on each of three; theta: ten on the right). It grows
a hundredfold while every row keeps about as many partners: as many keys and as much time as rows.
In every step a row is replaced on one side and then one on the other (one out, one in each), so a
state keeps its size. How it is measured is said in `against_duckdb`. Memory is that of the
operator's containers, without the rows themselves, which its inputs keep as well.
"""

import gc
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks._operators.against_duckdb import (
    BULK,
    Figures,
    compared,
    run,
    without_old_garbage,
)
from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.rows.operator import RecursiveOperator
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import AsOfJoin, Fixpoint, Join, JoinKind, Plan, RemoteSource
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

FEW = 10

COLUMNS = Schema.of(
    ("id", DataType.INTEGER),
    ("k", DataType.INTEGER),
    ("ts", DataType.TIMESTAMP),
    ("x", DataType.DOUBLE),
)
NAMES = ("l", "r", "t")
L, R, T = (RemoteSource(name, COLUMNS) for name in NAMES)
K = ((1, 1),)
_TS, _RTS = (Column(position, "ts", DataType.TIMESTAMP) for position in (2, 6))
_X, _RX = (Column(position, "x", DataType.DOUBLE) for position in (3, 7))


def _call(name: str, *arguments: Expression, dtype: DataType = DataType.BOOLEAN) -> Call:
    return Call(name, arguments, dtype)


_SUM = _call("+", _X, _RX, dtype=DataType.DOUBLE)
LARGE = _call(">", _SUM, Literal(1.0, DataType.DOUBLE))
LARGEST = _call(">", _SUM, Literal(1.5, DataType.DOUBLE))
_STEP = Literal(10, DataType.INTERVAL)
NEAR = _call(
    "AND",
    _call(">=", _TS, _call("-", _RTS, _STEP, dtype=DataType.TIMESTAMP)),
    _call("<=", _TS, _call("+", _RTS, _STEP, dtype=DataType.TIMESTAMP)),
)
CHAIN = Join(Join(L, R, JoinKind.INNER, K), T, JoinKind.INNER, ((4, 1),))


@dataclass(frozen=True, slots=True)
class Case:
    """A join, and its query in DuckDB over `l`, `r` and `t`.

    Attributes:
        few: Whether the right side is small and does not change.
        tree: Whether it runs as a tree of binary joins.
    """

    plan: Plan
    sql: str
    few: bool = False
    tree: bool = False


def _join(
    kind: JoinKind,
    residual: Expression | None = None,
    keys: tuple[tuple[int, int], ...] = K,
    *,
    few: bool = False,
) -> Case:
    parts = ["l.k = r.k"] if keys else []
    if residual is NEAR:
        parts.append("l.ts BETWEEN r.ts - 10 AND r.ts + 10")
    elif residual is not None:
        parts.append(f"l.x + r.x > {1.0 if residual is LARGE else 1.5}")
    on = " AND ".join(parts)
    if kind.is_filter:
        test = "EXISTS" if kind == JoinKind.SEMI else "NOT EXISTS"
        return Case(
            Join(L, R, kind, keys, residual),
            f"SELECT * FROM l WHERE {test} (SELECT 1 FROM r WHERE {on})",
            few,
        )
    return Case(Join(L, R, kind, keys, residual), f"SELECT * FROM l {kind} JOIN r ON {on}", few)


_AS_OF = "SELECT * FROM l ASOF {} r ON l.k = r.k AND l.ts >= r.ts"
_CHAIN = "SELECT * FROM l JOIN r ON l.k = r.k JOIN t ON r.id = t.k"
CASES: dict[str, Case] = {
    "inner": _join(JoinKind.INNER),
    "inner, residual": _join(JoinKind.INNER, LARGE),
    "left": _join(JoinKind.LEFT),
    "left, residual": _join(JoinKind.LEFT, LARGE),
    "full": _join(JoinKind.FULL),
    "full, residual": _join(JoinKind.FULL, LARGE),
    "semi": _join(JoinKind.SEMI),
    "semi, residual": _join(JoinKind.SEMI, LARGE),
    "anti": _join(JoinKind.ANTI),
    "anti, residual": _join(JoinKind.ANTI, LARGE),
    "theta with ten rows": _join(JoinKind.INNER, LARGEST, (), few=True),
    "band": _join(JoinKind.INNER, NEAR, ()),
    "band and key": _join(JoinKind.INNER, NEAR),
    "band, left": _join(JoinKind.LEFT, NEAR, ()),
    "band, anti": Case(  # as NOT EXISTS it is a nested loop to DuckDB
        Join(L, R, JoinKind.ANTI, (), NEAR),
        "SELECT * FROM l WHERE id NOT IN"
        " (SELECT l.id FROM l JOIN r ON l.ts BETWEEN r.ts - 10 AND r.ts + 10)",
    ),
    "as of": Case(AsOfJoin(L, R, JoinKind.INNER, 2, 2, keys=K), _AS_OF.format("JOIN")),
    "as of, left": Case(AsOfJoin(L, R, JoinKind.LEFT, 2, 2, keys=K), _AS_OF.format("LEFT JOIN")),
    "three inputs": Case(CHAIN, _CHAIN),
    "three inputs, tree": Case(CHAIN, _CHAIN, tree=True),
}


def _none(node: Fixpoint) -> RecursiveOperator:
    raise AssertionError(node.name)


class Bench:
    """One join over a state of one size."""

    def __init__(self, case: Case, size: int) -> None:
        self.choice = random.Random(size)
        self.names = NAMES if case.plan is CHAIN else NAMES[:2]
        part = max(size // len(self.names), FEW)
        self.keys = part
        self.as_of = isinstance(case.plan, AsOfJoin)
        self.rows: dict[str, list[Row]] = {}
        self.next = 0
        for name in self.names:
            count = FEW if case.few and name == "r" else part
            self.next = 0
            self.rows[name] = [self.row() for _ in range(count)]
        self.next = part
        self.changing = self.names[:1] if case.few else self.names
        self.circuit = compile_plan(case.plan, _none, multiway_joins=not case.tree)
        everything = {name: dict.fromkeys(rows, 1) for name, rows in self.rows.items()}
        self.answer_rows = sum(self.circuit.step({}, everything, 0).values())

    def row(self) -> Row:
        """Return a new row; for as-of joins ten rows of a side have the same key."""
        number, choice = self.next, self.choice
        self.next += 1
        keys = max(self.keys // 10, 1) if self.as_of else self.keys
        return (
            number % self.keys,
            choice.randrange(keys),
            10 * choice.randrange(self.keys) + number % 10,
            choice.random(),
        )

    def replaced(self, name: str, count: int) -> Delta:
        """Return a change that replaces so many rows of one input."""
        rows, delta = self.rows[name], {}
        for _ in range(count):
            new = self.row()
            position = int(new[0] or 0) % len(rows)
            delta[rows[position]] = -1
            delta[new] = 1
            rows[position] = new
        return delta

    def changes(self, batch: int, steps: int) -> Iterator[tuple[str, Delta]]:
        """Yield changes that replace so many rows, of each input in turn."""
        for number in range(steps):
            name = self.changing[number % len(self.changing)]
            yield name, self.replaced(name, batch)

    def seconds(self, batch: int, steps: int) -> tuple[float, int]:
        """Return the CPU time of a step on average over the inputs (of each the median)."""
        changes = list(self.changes(batch, steps))
        times: dict[str, list[float]] = {name: [] for name in self.changing}
        with without_old_garbage():
            for name, delta in changes:
                start = time.process_time_ns()
                change = self.circuit.step({}, {name: delta}, 0)
                times[name].append((time.process_time_ns() - start) / 1e9)
                self.answer_rows += sum(change.values())
        return sum(map(median, times.values())) / len(times), 2 * batch

    def tables(self) -> dict[str, dict[str, list[Any]]]:
        """Return the inputs by column."""
        return {
            name: dict(zip(COLUMNS.names, map(list, zip(*rows, strict=True)), strict=True))
            for name, rows in self.rows.items()
        }

    def state_bytes(self) -> float:
        """Return the bytes of the operators' containers per row of the inputs."""
        rows = {id(row) for rows in self.rows.values() for row in rows}
        total, seen = 0, set(rows)
        nodes: tuple[Any, ...] = self.circuit.nodes
        waiting = [node.operator for node in nodes if hasattr(node, "operator")]
        while waiting:
            found = waiting.pop()
            if id(found) in seen or isinstance(found, type) or callable(found):
                continue
            seen.add(id(found))
            if isinstance(found, dict | list | tuple | set) or hasattr(found, "__slots__"):
                total += sys.getsizeof(found)
                waiting.extend(gc.get_referents(found))
            elif hasattr(found, "__dict__"):
                waiting.append(vars(found))
        return total / len(rows)


def joins_against_duckdb(
    *, rows: int = 1_000_000, only: list[str] | None = None
) -> dict[str, Figures]:
    """Measure every join at three sizes up to `rows`; see `compared`."""
    return compared(
        {name: case.sql for name, case in CASES.items()},
        lambda name, size: Bench(CASES[name], size),
        rows=rows,
        only=only,
        smallest=FEW,
        bulk=min(BULK // 2, rows // 6),
        bulk_steps=12,
    )


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    return run(
        "Joins against DuckDB.",
        list(CASES),
        lambda rows, only: joins_against_duckdb(rows=rows, only=only),
        argv,
    )


if __name__ == "__main__":
    raise SystemExit(main())
