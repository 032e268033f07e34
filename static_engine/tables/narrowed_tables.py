"""Plans over the part of a stored table that they need: some columns, rows that may pass, groups.

What a database, files or the lake can leave out is left out; the plan's own filters stay, so that
the answer is the language's. Groups that a database computes as we do take the place of an
aggregate and all below it. A table that is small, or of which a plan needs everything, is read
whole and shared.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from static_engine.sources.conditions.pushed_conditions import may_be_pushed
from static_engine.sources.declared_options import table_options
from static_engine.sources.object_stores import is_stored
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_parts import Groups, Narrowed
from static_engine.tables.table_sizes import SMALL_ROWS
from streamsql.algebra.expressions import (
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    map_columns,
)
from streamsql.algebra.operators import (
    Aggregate,
    Filter,
    Plan,
    Project,
    Scan,
    SourceKind,
    with_inputs,
)
from streamsql.algebra.source_groups import SourceGroups, source_groups
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import TableSource
from streamsql.data.schema import Field, Schema

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
        compared: By large table: the columns that its database compares as we do.
    """

    def __init__(
        self,
        definition: Definitions,
        rows: Callable[[], Mapping[str, int]],
        compared: Callable[[], Mapping[str, frozenset[int]]] = dict,
    ) -> None:
        self._definition = definition
        self._rows, self._compared = rows, compared

    def plans(
        self, plans: Iterable[Plan], shared: frozenset[str] = frozenset()
    ) -> tuple[dict[Plan, Plan], dict[str, Narrowed]]:
        """Return each plan as it is to be evaluated, and the narrowed tables by their names.

        Args:
            plans: The plans.
            shared: Tables that are read whole in any case, so that no part of them is.
        """
        known = _Known(self._rows(), self._compared(), shared)
        return {plan: self._rewritten(plan, known) for plan in plans}, known.tables

    def _rewritten(self, plan: Plan, known: "_Known") -> Plan:
        if isinstance(plan, Aggregate) and (grouped := self._group(plan, known)) is not None:
            return grouped
        steps: list[Filter | Project] = []
        below = plan
        while isinstance(below, Filter | Project):
            steps.append(below)
            below = below.input
        if not isinstance(below, Scan):
            inputs = tuple(self._rewritten(child, known) for child in plan.inputs)
            return plan if inputs == plan.inputs else with_inputs(plan, inputs)
        narrow = self._narrow(below, steps, known)
        if narrow is None:
            return plan
        for step in reversed(steps):
            narrow = with_inputs(step, (narrow,))
        return narrow

    def _group(self, plan: Aggregate, known: "_Known") -> Plan | None:
        """Return what takes the place of an aggregate that a database computes, or None."""
        groups = source_groups(plan)
        definition = self._definition(groups.scan.source) if groups is not None else None
        if groups is None or definition is None or definition.schema != groups.scan.columns:
            return None
        compared = known.compared.get(groups.scan.source)
        if groups.scan.source in known.shared or compared is None:
            return None
        if not groups.columns <= compared:
            return None
        part = grouped_part(plan, groups, definition)
        known.tables[part.definition.name] = part
        schema = part.definition.schema
        scan = Scan(part.definition.name, SourceKind.TABLE, schema)
        columns = tuple(Column(p, f.name, f.dtype) for p, f in enumerate(schema.fields))
        return Project(scan, columns, plan.schema.names)

    def _narrow(self, scan: Scan, steps: list[Filter | Project], known: "_Known") -> Plan | None:
        """Return what takes the place of a scan, or None."""
        definition = self._definition(scan.source)
        if scan.kind != SourceKind.TABLE or scan.history is not None or definition is None:
            return None
        if definition.schema != scan.columns or not _reads_parts(definition):
            return None
        if scan.source in known.shared or known.rows.get(scan.source, SMALL_ROWS) < SMALL_ROWS:
            return None
        needed, conditions = _wanted(scan, steps)
        if len(needed) == len(scan.columns) and not conditions:
            return None
        place = {old: new for new, old in enumerate(needed)}
        moved = tuple(_moved(condition, place) for condition in conditions)
        kept = tuple(place[k] for k in definition.key if k in place)
        part = msgspec.structs.replace(
            definition,
            schema=definition.schema.select(needed),
            key=kept if len(kept) == len(definition.key) else (),
        )
        name = _name_of(definition, needed, moved)
        known.tables[name] = Narrowed(
            definition.name, msgspec.structs.replace(part, name=name), moved
        )
        source = msgspec.structs.replace(scan, source=name, columns=part.schema, key=part.key)
        fields = scan.columns.fields
        columns: tuple[Expression, ...] = tuple(
            Column(place[p], f.name, f.dtype) if p in place else Literal(None, f.dtype)
            for p, f in enumerate(fields)
        )
        return Project(source, columns, scan.columns.names)


def grouped_part(plan: Aggregate, groups: SourceGroups, definition: SourceDefinition) -> Narrowed:
    """Return the part of a table that an aggregate over it is."""
    needed = tuple(sorted(groups.columns))
    place = {old: new for new, old in enumerate(needed)}
    group = tuple(place[position] for position in groups.group)
    calls = tuple(
        msgspec.structs.replace(c, arguments=tuple(_moved(a, place) for a in c.arguments))
        for c in groups.calls
    )
    conditions = tuple(_moved(condition, place) for condition in groups.conditions)
    rows = msgspec.structs.replace(definition, schema=definition.schema.select(needed), key=())
    # Several columns of a plan may have one name, or none.
    schema = Schema(
        tuple(Field(f"{n} {f.name}", f.dtype) for n, f in enumerate(plan.schema.fields, 1))
    )
    name = _name_of(definition, needed, conditions, group, calls, schema)
    part = msgspec.structs.replace(rows, name=name, schema=schema)
    return Narrowed(definition.name, part, conditions, Groups(rows, group, calls))


@dataclass(frozen=True, slots=True)
class _Known:
    """Facts about tables, and the parts of them that were made."""

    rows: Mapping[str, int]
    compared: Mapping[str, frozenset[int]]
    shared: frozenset[str]
    tables: dict[str, Narrowed] = field(default_factory=dict)


def _moved(expression: Expression, place: Mapping[int, int]) -> Expression:
    """Return an expression over the columns that are read."""
    return map_columns(
        expression, lambda old: msgspec.structs.replace(old, position=place[old.position])
    )


def _name_of(definition: SourceDefinition, *parts: object) -> str:
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:_DIGEST]
    return f"{definition.name}.{digest}"


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
