"""Inner joins of many inputs at once (MJoin)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from stream_engine.state.indexed_relation import HoldsIndexes, Index, IndexedRelation, KeyedRows
from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.data.delta import Delta
from streamsql.data.types import Row

MOST_INPUTS = 16

_Pipeline = Callable[[Delta, Delta], None]
"""Takes the change of an input through the others, into the change of the output."""


@dataclass(frozen=True, slots=True)
class MultiJoin:
    """What a multiway join computes. Columns are counted over all inputs, one after the other.

    Attributes:
        classes: Columns that must be equal and not NULL; the inputs they connect are all inputs.
        residuals: Predicates, each over columns of any inputs.
        output: The columns to emit, in order.
    """

    widths: tuple[int, ...]
    classes: tuple[tuple[int, ...], ...]
    residuals: tuple[Expression, ...]
    output: tuple[int, ...]


class MultiJoinOperator(Operator, HoldsIndexes):
    """Rows of all inputs that agree on the keys: one pipeline per input, no intermediate results.

    d(r1 * … * rn) = dr1 * r2 * … * rn + r1' * dr2 * r3 * … + … (r' includes its change): a change
    of an input is taken through the other inputs one after the other, in an order fixed when the
    query is installed: always one that has keys with those before it, most keys first. A pipeline
    is compiled to nested loops over look-ups.

    Python nests 20 blocks at most, so more than `MOST_INPUTS` inputs are refused.

    Of two inputs there is no intermediate result to save, but pairs of which only some columns are
    wanted are made with these columns only.

    State: every input's rows, once per set of columns by which some pipeline looks them up. A tree
    of binary joins would keep its intermediate results as well. Work: one look-up a changed row and
    partial match; a tree that keeps a small intermediate result may need fewer.

        r1  {(1,): 1}     on r1.a = r2.a, r2.b = r3.b
        r2                {(1, 2): 1}
        r3                              {(2,): 3}
        output                          {(1, 1, 2, 2): 3}
    """

    def __init__(self, join: MultiJoin) -> None:
        layout = _Layout(join)
        ports = range(len(join.widths))
        self._join = join
        self._indexes: list[dict[tuple[int, ...], KeyedRows]] = [{} for _ in ports]
        steps = [layout.steps(port) for port in ports]
        for step in chain.from_iterable(steps):
            self._indexes[step.input].setdefault(step.columns, IndexedRelation(step.columns))
        self._pipelines = [self._pipeline(layout, port, steps[port]) for port in ports]

    @override
    def apply(self, port: int, delta: Delta) -> Delta:
        result: Delta = {}
        self._pipelines[port](delta, result)
        return result

    def indexes(self) -> list[Index]:
        """Return all indexes, those of the first input first."""
        groups = _Layout(self._join).needed()
        return [
            Index(port, columns, groups[port], rows)
            for port, indexes in enumerate(self._indexes)
            for columns, rows in indexes.items()
        ]

    @override
    def put_index(self, number: int, rows: KeyedRows) -> None:
        index = self.indexes()[number]
        self._indexes[index.port][index.columns] = rows
        layout = _Layout(self._join)
        for port in range(len(self._join.widths)):
            self._pipelines[port] = self._pipeline(layout, port, layout.steps(port))

    @override
    def state_rows(self) -> int:
        return sum(len(index) for indexes in self._indexes for index in indexes.values())

    def _pipeline(self, layout: "_Layout", port: int, steps: list["_Step"]) -> _Pipeline:
        names: dict[str, Any] = {"dict": dict}
        for step in steps:
            names[f"find{step.input}"] = self._indexes[step.input][step.columns].finder()
        own: list[tuple[int, ...]] = []
        for columns, index in self._indexes[port].items():
            if isinstance(index, IndexedRelation):
                names[f"own{len(own)}"] = index.buckets
                names[f"add{len(own)}"] = index.add
                own.append(columns)
        looked_up = [(step.input, self._indexes[step.input][step.columns]) for step in steps]
        others = [(number, rows) for number, rows in looked_up if _is_shared(rows)]
        shared = [i for i in self._indexes[port].items() if _is_shared(i[1])]
        patched = frozenset(number for number, _ in others)
        names.update({f"patched{number}": {} for number in patched})
        text = layout.source(port, steps, own, names, patched)
        exec(compile(text, "<join pipeline>", "exec"), names)  # noqa: S102  (no text from outside)
        pipeline: _Pipeline = names["pipeline"]
        if not others and not shared:
            return pipeline
        needed = layout.needed()[port]
        is_plain = all(needed == frozenset((c,) for c in columns) for columns, _ in shared)
        admits = None if is_plain else layout.admits(port)
        return _shared_pipeline(pipeline, names, admits, others, [rows for _, rows in shared])


def _is_shared(rows: KeyedRows) -> bool:
    return not isinstance(rows, IndexedRelation)


def _shared_pipeline(
    pipeline: _Pipeline,
    names: dict[str, Any],
    admits: Callable[[Row], bool] | None,
    looked_up: list[tuple[int, KeyedRows]],
    own: list[KeyedRows],
) -> _Pipeline:
    """Return a pipeline some of whose indexes are shared: it sees them as they are at each change.

    Shared indexes are given the whole change. It has to be without the rows that the pipeline
    passes over, unless these are those without which an index does without as well.
    """

    def run(delta: Delta, result: Delta) -> None:
        for number, rows in looked_up:
            names[f"find{number}"], names[f"patched{number}"] = rows.lookup()
        pipeline(delta, result)
        if own and admits is not None and not all(map(admits, delta)):
            delta = {row: weight for row, weight in delta.items() if admits(row)}
        for rows in own:
            rows.apply(delta)

    return run


@dataclass(frozen=True, slots=True)
class _Step:
    """One look-up of a pipeline.

    Attributes:
        columns: Its columns, counted from its own first one, that make the key.
        keys: The columns, counted over all inputs, whose values are looked up.
    """

    input: int
    columns: tuple[int, ...]
    keys: tuple[int, ...]


class _Layout:
    """Where the columns of a multiway join are, and its pipelines as Python text."""

    def __init__(self, join: MultiJoin) -> None:
        self.join = join
        self.input_of = [i for i, width in enumerate(join.widths) for _ in range(width)]
        self.starts = [sum(join.widths[:i]) for i in range(len(join.widths))]

    def steps(self, port: int) -> list[_Step]:
        known = {port}
        steps: list[_Step] = []
        while len(known) < len(self.join.widths):
            rest = [i for i in range(len(self.join.widths)) if i not in known]
            best = max((self._step(i, known) for i in rest), key=lambda step: len(step.keys))
            known.add(best.input)
            steps.append(best)
        return steps

    def _step(self, number: int, known: set[int]) -> _Step:
        columns: list[int] = []
        keys: list[int] = []
        for equal in self.join.classes:
            bound = [c for c in equal if self.input_of[c] in known]
            own = [c for c in equal if self.input_of[c] == number]
            if bound and own:  # the other columns of `own` equal the first one: see `_admission`
                columns.append(own[0] - self.starts[number])
                keys.append(bound[0])
        return _Step(number, tuple(columns), tuple(keys))

    def source(
        self,
        port: int,
        steps: Sequence[_Step],
        indexes: Sequence[tuple[int, ...]],
        names: dict[str, Any],
        patched: frozenset[int] = frozenset(),
    ) -> str:
        """Return the text of a pipeline; predicates are added to `names`.

        Of a `patched` input some keys have other rows than `find` gives.

        A changed row is remembered before others are looked up for it: both need its keys, and its
        own indexes are not read for it. Rows in an index have been admitted already.
        """
        row = [f"for r{port}, w{port} in delta.items():"]
        row.extend(f" {line}" for line in self._admission(port))
        kept: dict[str, str] = {}
        for number, columns in enumerate(indexes):
            key = self._key([self.starts[port] + column for column in columns])
            kept.setdefault(key, f"k{number}")
            row.extend(f" {line}" for line in _storing(number, key, f"r{port}", f"w{port}"))
        known = [port]
        row.extend(f" {line}" for line in self._checks(known, names))
        depth = 1
        for step in steps:
            number = step.input
            key = self._key(step.keys)
            rows = f"b{number}.items() if b{number}.__class__ is dict else ((b{number}, 1),)"
            found = kept.get(key, key)
            lines = [
                f"b{number} = find{number}({found})",
                *_patching(number, found, patched),
                f"if b{number} is None: continue",
                f"for r{number}, w{number} in {rows}:",
            ]
            row.extend(" " * depth + line for line in lines)
            depth += 1
            known.append(number)
            row.extend(" " * depth + line for line in self._checks(known, names))
        row.extend(" " * depth + line for line in self._emission())
        body = "\n".join(f" {line}" for line in row)
        return f"def pipeline(delta, result):\n get = result.get\n{body}"

    def needed(self) -> list[frozenset[tuple[int, ...]]]:
        """Return, for each input, its columns that must be equal and not NULL, in groups."""
        groups: list[set[tuple[int, ...]]] = [set() for _ in self.join.widths]
        for equal in self.join.classes:
            for number, start in enumerate(self.starts):
                own = tuple(c - start for c in equal if self.input_of[c] == number)
                if own:
                    groups[number].add(own)
        return [frozenset(group) for group in groups]

    def admits(self, number: int) -> Callable[[Row], bool]:
        """Return whether an input's row is looked up and kept at all."""
        groups = tuple(self.needed()[number])

        def admits(row: Row) -> bool:
            for first, *others in groups:
                value = row[first]
                if value is None or any(value != row[other] for other in others):
                    return False
            return True

        return admits

    def _key(self, columns: Sequence[int]) -> str:
        values = [self._value(column) for column in columns]
        return values[0] if len(values) == 1 else f"({', '.join(values)})"

    def _value(self, column: int) -> str:
        number = self.input_of[column]
        return f"r{number}[{column - self.starts[number]}]"

    def _admission(self, number: int) -> list[str]:
        """Return the lines that pass over a row whose own key columns are NULL or differ."""
        lines = []
        for equal in self.join.classes:
            own = [self._value(c) for c in equal if self.input_of[c] == number]
            if own:
                tests = [f"{own[0]} is None", *(f"{own[0]} != {other}" for other in own[1:])]
                lines.append(f"if {' or '.join(tests)}: continue")
        return lines

    def _checks(self, known: list[int], names: dict[str, Any]) -> list[str]:
        lines = []
        for number, residual in enumerate(self.join.residuals):
            needed = sorted({self.input_of[c] for c in columns_of(residual)})
            complete = set(needed) <= set(known) and (not needed or known[-1] in needed)
            if complete and (needed or len(known) == 1):
                names[f"holds{number}"] = compile_predicate(self._over(residual, needed))
                row = " + ".join(f"r{i}" for i in needed) or "()"
                lines.append(f"if not holds{number}({row}): continue")
        return lines

    def _over(self, residual: Expression, needed: list[int]) -> Expression:
        """Return a predicate over the concatenated rows of the inputs it needs."""
        offsets = {}
        position = 0
        for number in needed:
            offsets[number] = position - self.starts[number]
            position += self.join.widths[number]
        return map_columns(
            residual,
            lambda c: Column(c.position + offsets[self.input_of[c.position]], c.name, c.dtype),
        )

    def _emission(self) -> list[str]:
        """Return the lines that emit a row; rows cut to some columns may have to be added up."""
        inputs = range(len(self.join.widths))
        weight = " * ".join(f"w{i}" for i in inputs)
        output = self.join.output
        if output == tuple(range(len(self.input_of))):
            return [f"result[{' + '.join(f'r{i}' for i in inputs)}] = {weight}"]
        row = f"({''.join(self._value(column) + ', ' for column in output)})"
        if set(output) == set(range(len(self.input_of))):
            return [f"result[{row}] = {weight}"]
        return [
            f"row = {row}",
            f"new = get(row, 0) + {weight}",
            "if new: result[row] = new",
            "else: del result[row]",
        ]


def _patching(number: int, key: str, patched: frozenset[int]) -> list[str]:
    """Return the line that takes the rows of a key from elsewhere, if there are such keys."""
    if number not in patched:
        return []
    return [f"if {key} in patched{number}: b{number} = patched{number}[{key}]"]


def _storing(number: int, key: str, row: str, weight: str) -> list[str]:
    """Return the lines that add a row to an index, with a call in rare cases only."""
    return [
        f"k{number} = {key}",
        f"b = own{number}.get(k{number})",
        "if b is None:",
        f" own{number}[k{number}] = {row} if {weight} == 1 else {{{row}: {weight}}}",
        f"elif b.__class__ is dict and b.get({row}, 0) + {weight}:",
        f" b[{row}] = b.get({row}, 0) + {weight}",
        "else:",
        f" add{number}(k{number}, {row}, {weight})",
    ]
