"""Turn the branches of a fixpoint into rules over leaves.

A rule is a conjunctive query: the concatenation of its atoms' rows (each atom is a leaf or the
recursive relation) is the *wide row*; the rule's predicates and its head read the wide row. Filters
and projections above leaves are folded into the rule, so that a leaf which base and step branches
use is one leaf, whose rows have the same tokens in both.
"""

from dataclasses import dataclass, field

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjuncts,
    map_columns,
    shifted,
)
from streamsql.algebra.operators import (
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
    UnionAll,
    identity_columns,
    refers_to,
)
from streamsql.data.types import DataType
from streamsql.errors import UnsupportedError

RECURSIVE = -1
"""Stands for the recursive relation where a leaf number is expected."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to derive rows of the recursive relation.

    Attributes:
        atoms: Leaf number, or RECURSIVE, of every atom, in the order of the wide row.
        head: One expression over the wide row per column of the recursive relation.
    """

    atoms: tuple[int, ...]
    widths: tuple[int, ...]
    predicates: tuple[Expression, ...]
    head: tuple[Expression, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        """Position in the wide row where each atom starts."""
        return tuple(sum(self.widths[:i]) for i in range(len(self.widths)))

    @property
    def is_step(self) -> bool:
        """Whether the rule reads the recursive relation."""
        return RECURSIVE in self.atoms

    @property
    def is_linear(self) -> bool:
        """Whether the rule reads the recursive relation at most once."""
        return self.atoms.count(RECURSIVE) <= 1

    def local_predicates(self, atom: int) -> frozenset[Expression]:
        """Return the predicates that read only one atom, over that atom's row."""
        start = self.offsets[atom]
        columns = range(start, start + self.widths[atom])
        return frozenset(shifted(p, -start) for p in self.predicates if _reads_only(p, columns))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A fixpoint as rules.

    Attributes:
        leaves: The distinct maximal plans that do not read the recursive relation.
        rules: Base rules (one atom) and step rules.
    """

    leaves: tuple[Plan, ...]
    rules: tuple[Rule, ...]


@dataclass(slots=True)
class _Body:
    """A branch under construction: its columns are expressions over the wide row."""

    atoms: tuple[int, ...]
    widths: tuple[int, ...]
    columns: tuple[Expression, ...]
    predicates: tuple[Expression, ...] = ()


def rules_of(node: Fixpoint) -> RuleSet:
    """Return the rules of a fixpoint.

    Raises:
        UnsupportedError: A branch uses the recursive relation in a way that is not monotone: below
            an aggregate, or in a LEFT join.
    """
    builder = _Builder(node.name)
    rules = [
        Rule(body.atoms, body.widths, body.predicates, body.columns)
        for branch in node.base + node.step
        for body in builder.bodies(branch)
    ]
    return RuleSet(tuple(builder.leaves), tuple(dict.fromkeys(rules)))


@dataclass(slots=True)
class _Builder:
    name: str
    leaves: list[Plan] = field(default_factory=list)

    def bodies(self, plan: Plan) -> list[_Body]:
        match plan:
            case RecursiveReference(name=self.name):
                return [_Body((RECURSIVE,), (len(plan.schema),), identity_columns(plan.schema))]
            case Filter(input=child, predicate=predicate):
                return [self._filtered(body, predicate) for body in self.bodies(child)]
            case Project(input=child, expressions=expressions):
                return [self._projected(body, expressions) for body in self.bodies(child)]
            case Distinct(input=child):
                return self.bodies(child)
            case UnionAll(branches=branches):
                return [body for branch in branches for body in self.bodies(branch)]
            case Join() if refers_to(plan, self.name):
                return self._joined(plan)
            case _ if refers_to(plan, self.name):
                raise UnsupportedError(
                    f"recursion {self.name} passes through {type(plan).__name__.upper()}",
                    hint="aggregate the finished relation in the outer query instead",
                )
            case _:
                return [self._leaf(plan)]

    def _leaf(self, plan: Plan) -> _Body:
        if plan not in self.leaves:
            self.leaves.append(plan)
        number = self.leaves.index(plan)
        return _Body((number,), (len(plan.schema),), identity_columns(plan.schema))

    def _filtered(self, body: _Body, predicate: Expression) -> _Body:
        new = tuple(_substituted(part, body.columns) for part in conjuncts(predicate))
        return _Body(body.atoms, body.widths, body.columns, body.predicates + new)

    def _projected(self, body: _Body, expressions: tuple[Expression, ...]) -> _Body:
        columns = tuple(_substituted(e, body.columns) for e in expressions)
        return _Body(body.atoms, body.widths, columns, body.predicates)

    def _joined(self, plan: Join) -> list[_Body]:
        if plan.kind != JoinKind.INNER:
            raise UnsupportedError(
                f"recursion {self.name} passes through a LEFT JOIN, which is not monotone",
                hint="use an inner join inside the recursion",
            )
        return [
            self._pair(plan, left, right)
            for left in self.bodies(plan.left)
            for right in self.bodies(plan.right)
        ]

    def _pair(self, plan: Join, left: _Body, right: _Body) -> _Body:
        offset = sum(left.widths)
        columns = left.columns + tuple(shifted(c, offset) for c in right.columns)
        predicates = left.predicates + tuple(shifted(p, offset) for p in right.predicates)
        width = len(left.columns)
        keys = tuple(
            Call("=", (columns[mine], columns[width + theirs]), DataType.BOOLEAN)
            for mine, theirs in plan.keys
        )
        residual = tuple(_substituted(part, columns) for part in conjuncts(plan.residual))
        return _Body(
            left.atoms + right.atoms,
            left.widths + right.widths,
            columns,
            predicates + keys + residual,
        )


def _substituted(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    return map_columns(expression, lambda column: columns[column.position])


def _reads_only(expression: Expression, columns: range) -> bool:
    read = columns_of(expression)
    return bool(read) and all(position in columns for position in read)


@dataclass(frozen=True, slots=True)
class LeafUse:
    """What the rules need of a leaf.

    A leaf's rows are filtered by what every use demands and cut to the columns that any use reads
    before they get tokens: a change elsewhere (a new timestamp) then changes nothing here.

    Attributes:
        filter: Conjuncts over the leaf's row that every use demands.
        columns: Positions kept, ascending.
    """

    filter: tuple[Expression, ...]
    columns: tuple[int, ...]


def narrowed(rule_set: RuleSet) -> tuple[tuple[LeafUse, ...], tuple[Rule, ...]]:
    """Return per leaf what is needed of it, and the rules over the narrowed leaves."""
    filters = [_common_filter(rule_set.rules, leaf) for leaf in range(len(rule_set.leaves))]
    rules = [_without_filters(rule, filters) for rule in rule_set.rules]
    kept = [_columns_read(rules, leaf) for leaf in range(len(rule_set.leaves))]
    uses = tuple(
        LeafUse(tuple(sorted(f, key=repr)), columns)
        for f, columns in zip(filters, kept, strict=True)
    )
    return uses, tuple(_cut(rule, kept) for rule in rules)


def _uses(rules: tuple[Rule, ...] | list[Rule], leaf: int) -> list[tuple[Rule, int]]:
    return [(r, i) for r in rules for i, atom in enumerate(r.atoms) if atom == leaf]


def _common_filter(rules: tuple[Rule, ...], leaf: int) -> frozenset[Expression]:
    demands = [rule.local_predicates(atom) for rule, atom in _uses(rules, leaf)]
    return frozenset.intersection(*demands) if demands else frozenset()


def _without_filters(rule: Rule, filters: list[frozenset[Expression]]) -> Rule:
    drop = {
        shifted(predicate, offset)
        for atom, offset in zip(rule.atoms, rule.offsets, strict=True)
        if atom != RECURSIVE
        for predicate in filters[atom]
    }
    predicates = tuple(p for p in rule.predicates if p not in drop)
    return Rule(rule.atoms, rule.widths, predicates, rule.head)


def _columns_read(rules: list[Rule], leaf: int) -> tuple[int, ...]:
    read: set[int] = set()
    for rule, atom in _uses(rules, leaf):
        start = rule.offsets[atom]
        for expression in rule.predicates + rule.head:
            read.update(p - start for p in columns_of(expression))
        read = {p for p in read if 0 <= p < rule.widths[atom]}
    return tuple(sorted(read))


def _cut(rule: Rule, kept: list[tuple[int, ...]]) -> Rule:
    mapping: dict[int, int] = {}
    widths: list[int] = []
    for atom, offset, width in zip(rule.atoms, rule.offsets, rule.widths, strict=True):
        columns = tuple(range(width)) if atom == RECURSIVE else kept[atom]
        for position in columns:
            mapping[offset + position] = sum(widths) + columns.index(position)
        widths.append(len(columns))

    def renumber(column: Column) -> Expression:
        return Column(mapping[column.position], column.name, column.dtype)

    return Rule(
        rule.atoms,
        tuple(widths),
        tuple(map_columns(p, renumber) for p in rule.predicates),
        tuple(map_columns(e, renumber) for e in rule.head),
    )
