"""Plans over the part of a stored table that they need: some columns, the rows that may pass.

What a database, files or the lake can leave out is left out; the plan's own filters stay, so that
the answer is the language's. A table that is small, or of which a plan needs everything, is read
whole and shared.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping

import msgspec

from static_engine.sources.declared_options import table_options
from static_engine.sources.object_stores import is_stored
from static_engine.sources.pushed_conditions import may_be_pushed
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_parts import Narrowed
from streamsql.algebra.expressions import (
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    map_columns,
)
from streamsql.algebra.operators import (
    Filter,
    Plan,
    Project,
    Scan,
    SourceKind,
    with_inputs,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import TableSource

SMALL_ROWS = 10_000
_DIGEST = 12
_IN_PARTS = (
    TableSource.SQL,
    TableSource.PARQUET,
    TableSource.ICEBERG,
    TableSource.DELTA,
    TableSource.LAKE,
)

Definitions = Callable[[str], SourceDefinition | None]


class NarrowedTables:
    """Rewrites plans over tables of which parts can be read.

    Args:
        definition: Of a table by name.
        rows: About how many rows tables have, as far as known.
    """

    def __init__(self, definition: Definitions, rows: Callable[[], Mapping[str, int]]) -> None:
        self._definition = definition
        self._rows = rows

    def plans(self, plans: Iterable[Plan]) -> tuple[dict[Plan, Plan], dict[str, Narrowed]]:
        """Return each plan as it is to be evaluated, and the narrowed tables by their names."""
        rows = self._rows()
        tables: dict[str, Narrowed] = {}
        return {plan: self._rewritten(plan, rows, tables) for plan in plans}, tables

    def _rewritten(self, plan: Plan, rows: Mapping[str, int], tables: dict[str, Narrowed]) -> Plan:
        steps: list[Filter | Project] = []
        below = plan
        while isinstance(below, Filter | Project):
            steps.append(below)
            below = below.input
        if not isinstance(below, Scan):
            inputs = tuple(self._rewritten(child, rows, tables) for child in plan.inputs)
            return plan if inputs == plan.inputs else with_inputs(plan, inputs)
        narrow = self._narrow(below, steps, rows, tables)
        if narrow is None:
            return plan
        for step in reversed(steps):
            narrow = with_inputs(step, (narrow,))
        return narrow

    def _narrow(
        self,
        scan: Scan,
        steps: list[Filter | Project],
        rows: Mapping[str, int],
        tables: dict[str, Narrowed],
    ) -> Plan | None:
        """Return what takes the place of a scan, or None."""
        definition = self._definition(scan.source)
        if scan.kind != SourceKind.TABLE or scan.history is not None or definition is None:
            return None
        if definition.schema != scan.columns or not _reads_parts(definition):
            return None
        if rows.get(scan.source, SMALL_ROWS) < SMALL_ROWS:
            return None
        needed, conditions = _wanted(scan, steps)
        if len(needed) == len(scan.columns) and not conditions:
            return None
        place = {old: new for new, old in enumerate(needed)}
        moved = tuple(
            map_columns(c, lambda old: msgspec.structs.replace(old, position=place[old.position]))
            for c in conditions
        )
        kept = tuple(place[k] for k in definition.key if k in place)
        part = msgspec.structs.replace(
            definition,
            schema=definition.schema.select(needed),
            key=kept if len(kept) == len(definition.key) else (),
        )
        digest = hashlib.sha256(repr((needed, moved)).encode()).hexdigest()[:_DIGEST]
        name = f"{definition.name}.{digest}"
        tables[name] = Narrowed(definition.name, msgspec.structs.replace(part, name=name), moved)
        source = msgspec.structs.replace(scan, source=name, columns=part.schema, key=part.key)
        fields = scan.columns.fields
        columns: tuple[Expression, ...] = tuple(
            Column(place[p], f.name, f.dtype) if p in place else Literal(None, f.dtype)
            for p, f in enumerate(fields)
        )
        return Project(source, columns, scan.columns.names)


def _wanted(
    scan: Scan, steps: list[Filter | Project]
) -> tuple[tuple[int, ...], tuple[Expression, ...]]:
    """Return the columns that are read of a table, and the conditions that may be pushed."""
    fields = scan.columns.fields
    output: tuple[Expression, ...] = tuple(Column(p, f.name, f.dtype) for p, f in enumerate(fields))
    read: set[int] = set()
    conditions: list[Expression] = []
    for step in reversed(steps):
        before = output

        def over(expression: Expression, below: tuple[Expression, ...] = before) -> Expression:
            return map_columns(expression, lambda column: below[column.position])

        if isinstance(step, Project):
            output = tuple(over(expression) for expression in step.expressions)
            continue
        predicate = over(step.predicate)
        read |= columns_of(predicate)
        conditions += [part for part in conjuncts(predicate) if may_be_pushed(part)]
    read = read.union(*map(columns_of, output))
    # A table without columns has no rows to read: one is kept to count them.
    return tuple(sorted(read)) or (0,), tuple(conditions)


def _reads_parts(definition: SourceDefinition) -> bool:
    try:
        options = table_options(definition)
    except TableError:
        return False
    # Objects of a store are fetched whole: parts of them would be fetched once for each query.
    return options.source in _IN_PARTS and not is_stored(options.path)
