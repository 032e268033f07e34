"""Mutual recursion: several common tables that refer to each other are one tagged relation.

    a(x, n) AS (base UNION SELECT … FROM b …), b(x, y) AS (SELECT … FROM a …)
    ->  Fixpoint a+b(relation, x, n, y) whose branches write 'a' or 'b' into the first column,
        a = Project[x, n] Filter[relation = 'a'] over it, and b likewise

Columns at the same position share a column of the relation where their types agree; the columns
that a table does not have are NULL in its rows.
"""

from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.choices import Copies
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Filter,
    Fixpoint,
    Plan,
    Project,
    RecursiveReference,
    identity_columns,
    transform_up,
)
from streamsql.binder.aggregation.select_items import unique
from streamsql.binder.names.dependences import names_read
from streamsql.binder.names.environment import CommonTable, Environment
from streamsql.binder.select.linear_recursion import DEFAULT_LIMIT
from streamsql.binder.select.recursive_branches import (
    RecursiveDefinition,
    bind_base,
    bind_step,
    column_names,
    copies_of,
    no_convergence,
    split_branches,
)
from streamsql.binder.select.round_limits import within_rounds
from streamsql.binder.select.set_operations import common_types, with_types
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType

TAG = "relation"
"""Name of the column that holds the relation of a row."""


@dataclass(slots=True)
class _Member:
    """One of the relations while it is bound.

    Attributes:
        reference: What stands for it in the step branches until the layout is known.
        names: Column names, empty until the first branch is bound.
        types: Column types so far.
    """

    definition: RecursiveDefinition
    reference: str
    base_trees: list[exp.Expr]
    step_trees: list[exp.Expr]
    base: list[Plan] = field(default_factory=list)
    steps: list[Plan] = field(default_factory=list)
    names: tuple[str, ...] = ()
    types: tuple[DataType, ...] = ()

    @property
    def name(self) -> str:
        """The name it is read under."""
        return self.definition.name

    @property
    def schema(self) -> Schema:
        """The columns as far as they are known."""
        return Schema(tuple(map(Field, self.names, self.types)))

    def take(self, first: Plan, environment: Environment) -> None:
        """Take names and types from the first branch."""
        place = self.definition.place
        self.names = column_names(self.definition.columns, first, place, environment)
        self.types = first.schema.dtypes


def bind_mutual(
    definitions: list[RecursiveDefinition], environment: Environment
) -> dict[str, Plan]:
    """Return the plans of common tables that refer to each other, by name."""
    group = [definition.name for definition in definitions]
    fixpoint = environment.binding.fixpoint_name(
        "+".join(group), environment.place(definitions[0].place)
    )
    members = [
        _Member(d, f"{fixpoint}/{d.name}", *split_branches(d.tree, group, environment))
        for d in definitions
    ]
    for d in definitions:
        if copies_of(d.tree, group, d.name, environment) != Copies.ONE:
            raise environment.unsupported(
                d.tree,
                f"UNION ALL in {d.name!r}, which is defined together with others, is refused",
                hint="write UNION, or one relation with a column that tells its parts apart",
                code="unsupported_recursion",
            )
    _bind_first(members, environment)
    _bind_steps(members, environment)
    layout = _Layout.of(members)
    everything = Fixpoint(
        fixpoint,
        layout.schema,
        tuple(layout.row(m, with_types(b, m.types)) for m in members for b in m.base),
        tuple(
            layout.row(m, _settled(with_types(s, m.types), members, layout, fixpoint))
            for m in members
            for s in m.steps
        ),
        definitions[0].limit or DEFAULT_LIMIT,
    )
    rounds = definitions[0].rounds
    whole = everything if rounds is None else within_rounds(everything, rounds)
    return {member.name: layout.part(member, whole) for member in members}


def _bind_first(members: list[_Member], environment: Environment) -> None:
    """Bind the base branches; a member without one takes its columns from a step branch."""
    for member in members:
        member.base = bind_base(member.base_trees, environment)
        if member.base:
            member.take(member.base[0], environment)
            member.types = _widened(member, environment)
    while unknown := [member for member in members if not member.names]:
        known = {member.name for member in members if member.names}
        inner = _with_references([m for m in members if m.names], environment)
        ready = [
            (member, tree)
            for member in unknown
            for tree in member.step_trees
            if names_read(tree, [m.name for m in members]) <= known
        ]
        if not ready:
            raise _without_base(unknown, environment)
        member, tree = ready[0]
        places = dict(environment.binding.places)
        member.take(inner.plan_of(tree), environment)
        environment.binding.places = places


def _without_base(members: list[_Member], environment: Environment) -> Exception:
    names = " and ".join(member.name for member in members)
    many = len(members) > 1
    return environment.error(
        members[0].definition.place,
        f"the recursion {names!r} has no base: every branch reads "
        f"{'one of them' if many else names}",
        hint=f"start {'one of them' if many else 'it'} with a branch that reads none of them",
        code="recursion_without_base",
    )


def _with_references(members: list[_Member], environment: Environment) -> Environment:
    for member in members:
        reference = RecursiveReference(member.reference, member.schema)
        environment = environment.with_table(member.name, CommonTable(reference, recursive=True))
    return environment


def _bind_steps(members: list[_Member], environment: Environment) -> None:
    """Bind the step branches, widening column types until all branches agree.

    Every round but the last widens at least one column, so it ends.
    """
    recursive = {member.name: member.reference for member in members}
    places = dict(environment.binding.places)
    for _round in range(2 * sum(len(member.names) for member in members) + 2):
        environment.binding.places = dict(places)
        inner = _with_references(members, environment)
        for member in members:
            member.steps = [bind_step(t, recursive, inner) for t in member.step_trees]
        wider = [_widened(member, environment) for member in members]
        if wider == [member.types for member in members]:
            return
        for member, types in zip(members, wider, strict=True):
            member.types = types
    names = " and ".join(member.name for member in members)
    raise no_convergence(members[0].definition.place, names, environment)


def _widened(member: _Member, environment: Environment) -> tuple[DataType, ...]:
    branches = [*member.base, *member.steps]
    rows = [member.types, *(branch.schema.dtypes for branch in branches)]
    shown = [branches[0], *branches] if branches else []
    tree = member.definition.tree
    return common_types(rows, shown, tree, environment, f"recursion {member.name!r}")


def _settled(plan: Plan, members: list[_Member], layout: "_Layout", fixpoint: str) -> Plan:
    """Read the parts of the tagged relation where a branch reads the other relations."""
    whole = RecursiveReference(fixpoint, layout.schema)
    parts = {member.reference: layout.part(member, whole) for member in members}

    def settled(node: Plan) -> Plan:
        return parts.get(node.name, node) if isinstance(node, RecursiveReference) else node

    return transform_up(plan, settled)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Places of the relations' columns in the tagged one.

    Attributes:
        schema: Of the tagged relation.
        places: Per relation, the position of each of its columns.
    """

    schema: Schema
    places: dict[str, tuple[int, ...]]

    @staticmethod
    def of(members: list[_Member]) -> "_Layout":
        """Share columns by position where types agree."""
        slots: dict[tuple[int, DataType], str] = {}
        for position in range(max(len(member.names) for member in members)):
            for member in members:
                if position < len(member.names):
                    slot = (position, member.types[position])
                    slots.setdefault(slot, member.names[position])
        keys = list(slots)
        names = unique([TAG, *slots.values()])
        types = [DataType.TEXT, *(dtype for _, dtype in keys)]
        places = {
            member.name: tuple(1 + keys.index(slot) for slot in enumerate(member.types))
            for member in members
        }
        return _Layout(Schema(tuple(map(Field, names, types))), places)

    def row(self, member: _Member, branch: Plan) -> Plan:
        """Return a branch of a relation as a branch of the tagged one."""
        own = identity_columns(branch.schema)
        if isinstance(branch, Project):
            own, branch = branch.expressions, branch.input
        columns: list[Expression] = [Literal(None, dtype) for dtype in self.schema.dtypes]
        columns[0] = Literal(member.name, DataType.TEXT)
        for place, expression in zip(self.places[member.name], own, strict=True):
            columns[place] = expression
        return Project(branch, tuple(columns), self.schema.names)

    def part(self, member: _Member, whole: Plan) -> Plan:
        """Return one of the relations as a part of the tagged one."""
        columns = identity_columns(self.schema)
        tag = Literal(member.name, DataType.TEXT)
        rows = Filter(whole, Call("=", (columns[0], tag), DataType.BOOLEAN))
        own = tuple(
            Column(place, self.schema.names[place], self.schema.dtypes[place])
            for place in self.places[member.name]
        )
        return Project(rows, own, member.names)
