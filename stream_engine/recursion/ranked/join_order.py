"""In which order the atoms of a rule are joined, and by which keys, for generated loops.

A *nest* starts with entries of one atom, or with a head row of which some columns are given (to
find the derivations of that row, or of its group). Every further atom is one loop: over the rows of
an index bucket where equalities or given columns fix some of its columns, else over all rows.
"""

from dataclasses import dataclass, field

from stream_engine.recursion.program.rules import Rule
from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of


@dataclass(frozen=True, slots=True)
class Key:
    """What fixes a column of an atom.

    Attributes:
        source: An expression over the wide row, or the head position whose value is given.
    """

    column: int
    source: Expression | int

    @property
    def skips_null(self) -> bool:
        """Whether NULL fixes nothing: an equality does not hold then, a given value does."""
        return not isinstance(self.source, int | Literal)


@dataclass(frozen=True, slots=True)
class Loop:
    """Joins one more atom.

    Attributes:
        atom: Its number in the rule.
        relation: Leaf number or RECURSIVE.
        keys: What fixes which of its columns, by ascending column; empty for a loop over all rows.
    """

    atom: int
    relation: int
    keys: tuple[Key, ...]
    predicates: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Nest:
    """A rule, seen from one of its atoms or from its head.

    Attributes:
        start: Number of the atom that is given, or None.
        unchecked: Head positions that are given but do not fix a column: to be compared at last.
    """

    rule: Rule
    start: int | None
    predicates: tuple[Expression, ...]
    loops: tuple[Loop, ...]
    unchecked: tuple[int, ...]


def nest_from_atom(rule: Rule, atom: int) -> Nest:
    """Return the nest that starts with entries of an atom."""
    return _Order(rule, ()).nest(atom)


def nest_from_head(rule: Rule, given: tuple[int, ...]) -> Nest:
    """Return the nest that finds derivations of head rows with given values at some positions."""
    return _Order(rule, given).nest(None)


@dataclass(slots=True)
class _Order:
    rule: Rule
    given: tuple[int, ...]
    joined: set[int] = field(default_factory=set)
    pending: list[Expression] = field(default_factory=list)
    used: set[int] = field(default_factory=set)

    def nest(self, start: int | None) -> Nest:
        rule = self.rule
        self.pending = list(rule.predicates)
        atoms = list(range(len(rule.atoms)))
        if start is not None:
            atoms.remove(start)
            self._join(start)
        first = self._ready()
        loops = []
        while atoms:
            atom = max(atoms, key=self._preference)
            atoms.remove(atom)
            loops.append(self._loop(atom))
        unchecked = tuple(position for position in self.given if position not in self.used)
        return Nest(rule, start, first, tuple(loops), unchecked)

    def _preference(self, atom: int) -> tuple[bool, int, bool, int]:
        """Prefer a single look-up, then many fixed columns, then leaves, then the text's order."""
        bound = self._bound(atom)
        full = len(bound) == self.rule.widths[atom]
        fixed = sum(not isinstance(key.source, Literal) for key, _ in bound.values())
        return full, fixed, self.rule.atoms[atom] >= 0, -atom

    def _loop(self, atom: int) -> Loop:
        bound = self._bound(atom)
        covered = [predicate for _, predicate in bound.values()]
        self.pending = [p for p in self.pending if not any(p is c for c in covered)]
        keys = tuple(bound[column][0] for column in sorted(bound))
        self.used.update(key.source for key in keys if isinstance(key.source, int))
        self._join(atom)
        return Loop(atom, self.rule.atoms[atom], keys, self._ready())

    def _join(self, atom: int) -> None:
        offset = self.rule.offsets[atom]
        self.joined.update(range(offset, offset + self.rule.widths[atom]))

    def _ready(self) -> tuple[Expression, ...]:
        ready = tuple(p for p in self.pending if columns_of(p) <= self.joined)
        self.pending = [p for p in self.pending if not any(p is r for r in ready)]
        return ready

    def _bound(self, atom: int) -> dict[int, tuple[Key, Expression | None]]:
        """Return the atom's fixed columns with their keys and the predicates these stand for."""
        offset = self.rule.offsets[atom]
        columns = range(offset, offset + self.rule.widths[atom])
        bound: dict[int, tuple[Key, Expression | None]] = {}
        for predicate in self.pending:
            pair = self._equality(predicate, columns)
            if pair is not None:
                column = pair[0] - offset
                bound.setdefault(column, (Key(column, pair[1]), predicate))
        for position in self.given:
            expression = self.rule.head[position]
            if isinstance(expression, Column) and expression.position in columns:
                column = expression.position - offset
                bound.setdefault(column, (Key(column, position), None))
        return bound

    def _equality(self, predicate: Expression, columns: range) -> tuple[int, Expression] | None:
        if not isinstance(predicate, Call) or predicate.function != "=":
            return None
        left, right = predicate.arguments
        for mine, other in ((left, right), (right, left)):
            if not (isinstance(mine, Column) and mine.position in columns):
                continue
            if isinstance(other, Literal):
                if other.value is not None:
                    return mine.position, other
            elif columns_of(other) and columns_of(other) <= self.joined:
                return mine.position, other
        return None
