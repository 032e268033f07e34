"""Outer, semi and anti joins from the same join of more rows of its preserved side.

| wanted | node | sound because |
|---|---|---|
| LEFT, SEMI, ANTI of fewer left rows | the same of more | a left row has its partners by itself |
| FULL | FULL of the same rows | conditions above it alone remain: below it rows become lonely |
| ANTI | LEFT | a left row without partner is there once, and a key of its partner is NULL |

The rows of the other side, and what they are joined by, have to be the same: fewer partners would
be other rows with NULLs. Conditions of the right side and of ON count together, since they only
decide who is a partner; in a FULL join those of a side decide who is lonely, too. Columns of a side
that is padded are those of the node, or not there: an expression of NULLs need not be NULL.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.sharing.forms.alignment import Available, aligned
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.forms.residuals import predicate_set
from federated_optimizer.sharing.rule_bases import Basis
from federated_optimizer.sharing.rules import select_project_join
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    map_columns,
    shifted,
    substituted,
)
from streamsql.algebra.operators import Join, JoinKind, Plan, Values
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType

_KINDS = frozenset({JoinKind.LEFT, JoinKind.FULL, JoinKind.SEMI, JoinKind.ANTI})


@dataclass(frozen=True, slots=True)
class _OuterJoin:
    """A join that is no inner one, between blocks.

    Attributes:
        kind: Which.
        left: The preserved side.
        right: The other side.
        on: Who is a partner, over the universal columns of both sides.
        above: What is shown, over the outputs of both sides; its only input is the join.
    """

    kind: JoinKind
    left: Block
    right: Block
    on: tuple[Expression, ...]
    above: Block

    @property
    def partners(self) -> tuple[Expression, ...]:
        """All that decides who is a partner, of rows of the left side."""
        width = self.left.offsets[-1]
        return (*self.on, *(shifted(p, width) for p in self.right.predicates))

    def over(self, other: "_OuterJoin") -> Iterator["_OuterJoin"]:
        """Yield the join over the inputs of another one, in every possible assignment."""
        lefts = _with_on(self.left, self.on, 0)
        rights = _with_on(self.right, self.on, self.left.offsets[-1])
        mine, theirs = len(self.left.outputs), len(self.right.outputs)
        for left in aligned(lefts, other.left):
            for right in aligned(rights, other.right):
                width = other.left.offsets[-1]
                moved = (*left.outputs[mine:], *(shifted(e, width) for e in right.outputs[theirs:]))
                yield replace(
                    self,
                    left=replace(left, outputs=left.outputs[:mine], names=self.left.names),
                    right=replace(right, outputs=right.outputs[:theirs], names=self.right.names),
                    on=self._on(moved),
                )

    def _on(self, moved: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """Return the conditions with the columns that they read, of left and right, replaced."""
        start = self.left.offsets[-1]
        read = (*_read(self.on, self.left, 0), *_read(self.on, self.right, start))
        columns = dict(zip(read, moved, strict=True))
        return tuple(map_columns(p, lambda c: columns[c.position]) for p in self.on)


def _read(on: tuple[Expression, ...], side: Block, start: int) -> list[int]:
    """Return the columns of a side that conditions read."""
    read = frozenset[int]().union(*map(columns_of, on))
    return sorted(c for c in read if start <= c < start + side.offsets[-1])


def _with_on(side: Block, on: tuple[Expression, ...], start: int) -> Block:
    """Return a side that also shows what conditions read of it."""
    columns = side.columns
    shown = tuple(columns[c - start] for c in _read(on, side, start))
    outputs = (*side.outputs, *shown)
    return replace(side, outputs=outputs, names=("",) * len(outputs))


def answer(wanted: Plan, offered: Plan, leaf: Plan) -> Plan | None:
    """Return a join over the rows of one of more preserved rows; None: it is not proven right."""
    ours, theirs = _outer_join_of(wanted), _outer_join_of(offered)
    if ours is None or theirs is None:
        return None
    is_without = (ours.kind, theirs.kind) == (JoinKind.ANTI, JoinKind.LEFT)
    if ours.kind != theirs.kind and not is_without:
        return None
    for moved in ours.over(theirs):
        if not _has_same_partners(moved, theirs):
            continue
        one, other = _rows(moved, theirs), _rows(theirs, theirs)
        if one is None or other is None:
            continue
        if is_without:
            lonely = _lonely(theirs)
            if lonely is None:
                return None
            one = replace(one, predicates=(*one.predicates, lonely))
        found = select_project_join.answer_block(one, other, leaf)
        if found is not None:
            return found
    return None


def offered(plan: Plan) -> Basis | None:
    """Return who is a partner in a node; None: it is no such join."""
    join = _outer_join_of(plan)
    return None if join is None else Basis(join.kind, (join.left, join.right), join.partners)


def wanted(plan: Plan) -> tuple[Basis, ...]:
    """Return who is a partner in a plan, for each kind of join that it may come from."""
    join = _outer_join_of(plan)
    if join is None:
        return ()
    kinds = (join.kind, JoinKind.LEFT) if join.kind == JoinKind.ANTI else (join.kind,)
    return tuple(Basis(kind, (join.left, join.right), join.partners) for kind in kinds)


@exactly_cached(4_096)
def _outer_join_of(plan: Plan) -> _OuterJoin | None:
    above = block_of(plan)
    match above.inputs:
        case (Join() as join,) if join.kind in _KINDS:
            pass
        case _:
            return None
    left, right = block_of(join.left), block_of(join.right)
    outputs = (*left.outputs, *(shifted(e, left.offsets[-1]) for e in right.outputs))
    width = len(left.outputs)
    equal = [Call("=", (outputs[a], outputs[width + b]), DataType.BOOLEAN) for a, b in join.keys]
    found = [substituted(p, outputs) for p in conjuncts(join.residual)]
    rest = [p for p in found if p is not None]
    if len(rest) != len(found):
        return None
    return _OuterJoin(join.kind, left, right, (*equal, *rest), above)


def _has_same_partners(ours: _OuterJoin, theirs: _OuterJoin) -> bool:
    """Return whether a row finds the same partners in both joins."""
    if ours.kind == JoinKind.FULL:
        sides = ((ours.left, theirs.left), (ours.right, theirs.right))
        if any(predicate_set(a.predicates) != predicate_set(b.predicates) for a, b in sides):
            return False
    here, there = predicate_set(ours.partners), predicate_set(theirs.partners)
    return here.implies(there) and there.implies(here)


def _rows(join: _OuterJoin, node: _OuterJoin) -> Block | None:
    """Return the rows of a join as a block over one input: the rows of a node before it shows them.

    The columns of the input are the universal ones of the preserved side, then the outputs of the
    sides that are padded.
    """
    padded = [node.right] if join.kind != JoinKind.FULL else [node.left, node.right]
    kept = [] if join.kind == JoinKind.FULL else [node.left]
    columns = [e for side in kept for e in side.columns]
    fields = [(e.name, e.dtype) for e in columns if isinstance(e, Column)]
    places: list[Expression | None] = [e for _ in kept for e in join.left.outputs]
    mine = (join.right,) if join.kind != JoinKind.FULL else (join.left, join.right)
    for side, other in zip(mine, padded, strict=True):
        available = Available.of(other)
        for output in side.outputs:
            at = available.places.get(available.text(output))
            if at is None:
                places.append(
                    output if isinstance(output, Literal) and output.value is None else None
                )
            else:
                places.append(Column(len(fields) + at, "", output.dtype))
        fields += [(n, e.dtype) for n, e in zip(other.names, other.outputs, strict=True)]
    read = join.above.needed()
    if any(places[c] is None for c in read):
        return None
    null = Literal(None, DataType.NULL)
    put = tuple(e if e is not None else null for e in places)
    below = join.left.predicates if kept else ()
    above = [substituted(p, put) for p in join.above.predicates]
    outputs = [substituted(e, put) for e in join.above.outputs]
    found = [e for e in (*above, *outputs) if e is not None]
    if len(found) != len(above) + len(outputs):
        return None
    rows = Values((), Schema(tuple(Field(name, dtype) for name, dtype in fields)))
    count = len(above)
    return Block((rows,), (*below, *found[:count]), tuple(found[count:]), join.above.names)


def _lonely(node: _OuterJoin) -> Expression | None:
    """Return what is TRUE of the rows of a left join without partner; None: nothing says so."""
    width = node.left.offsets[-1]
    for predicate in node.on:
        match predicate:
            case Call("=", (Column() as a, Column() as b)):
                keys = {a.position, b.position}
            case _:
                continue
        for place, output in enumerate(node.right.outputs):
            if isinstance(output, Column) and width + output.position in keys:
                column = Column(width + place, output.name, output.dtype)
                return Call("IS NULL", (column,), DataType.BOOLEAN)
    return None
