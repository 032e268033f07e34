"""A plan evaluated over the base rows of a moment, with the rows of every operator kept.

The operators are those of the running engine, in instances of their own.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping

from stream_engine.circuit.compiler import plain_operator
from stream_engine.explanation.budget import Budget, ExplanationLimitError
from stream_engine.explanation.faithfulness import unexplained
from stream_engine.operators.rows.operator import Operator
from stream_engine.recursion.absorption.replicated import ReplicatedFixpoint
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.program import Program, program_of
from stream_engine.recursion.strategies import LOCAL_ENGINES
from streamsql.algebra.choices import Copies, Strategy
from streamsql.algebra.explain import describe
from streamsql.algebra.operators import (
    Fixpoint,
    Join,
    OnClose,
    Plan,
    RecursiveReference,
    RemoteSource,
    Scan,
    StreamWindow,
    ToStream,
    Window,
    WindowBounds,
    Younger,
)
from streamsql.algebra.row_explanations import Contents, Leaf
from streamsql.algebra.scalar_functions.scalar import key_of
from streamsql.data.delta import Delta, accumulate, from_rows
from streamsql.data.types import Row
from streamsql.errors import InternalError, RecursionLimitError, UnsupportedError

_HERE = "explanation"


class Relation:
    """The rows of one operator of the plan, with their multiplicities.

    `operator` or, of a fixpoint, `program` and `recursion` compute them; leaves have neither. The
    inputs of a fixpoint are its leaves.
    """

    __slots__ = ("_indexes", "inputs", "operator", "plan", "program", "recursion", "rows")

    def __init__(
        self,
        plan: Plan,
        inputs: tuple["Relation", ...] = (),
        operator: Operator | None = None,
        program: Program | None = None,
        recursion: ReplicatedFixpoint | None = None,
    ) -> None:
        self.plan = plan
        self.inputs = inputs
        self.rows: Delta = {}
        self.operator = operator
        self.program = program
        self.recursion = recursion
        self._indexes: dict[Hashable, dict[Row, list[Row]]] = {}

    def index(
        self, name: Hashable, make_key: Callable[[], Callable[[Row], Row]]
    ) -> dict[Row, list[Row]]:
        """Return the distinct rows by a key, built on the first call with that name."""
        found = self._indexes.get(name)
        if found is None:
            key = make_key()
            found = self._indexes[name] = {}
            for row in self.rows:
                found.setdefault(key(row), []).append(row)
        return found

    def apply(self, delta: Delta) -> None:
        """Change the rows."""
        accumulate(self.rows, delta)
        self._indexes = {}


class Evaluation:
    """The relations of a closed plan over rows of its leaves.

    Raises:
        ExplanationLimitError: It takes more work than the budget.
    """

    def __init__(self, plan: Plan, contents: Contents, budget: Budget) -> None:
        self._budget = budget
        self._relations: dict[Plan, Relation] = {}
        self.root = self._relation(plan)
        self._push({leaf: from_rows(rows) for leaf, rows in contents.items()}, start=True)

    def change(self, leaves: Mapping[Leaf, Delta]) -> Delta:
        """Apply changes of leaves; return the change of the plan's rows."""
        return self._push(leaves, start=False)

    def _relation(self, plan: Plan) -> Relation:
        known = self._relations.get(plan)
        if known is not None:
            return known
        match plan:
            case Scan() | Window():
                made = Relation(plan)
            case Fixpoint() if plan.copies != Copies.ONE:
                raise UnsupportedError(
                    f"the recursion {plan.name} counts copies (UNION ALL), so it does not "
                    "keep the base rows of a copy",
                    hint="ask about the recursion with UNION",
                )
            case Fixpoint():
                program = program_of(plan)
                inputs = tuple(self._relation(leaf) for leaf in program.leaves)
                recursion = self._recursion(program)
                made = Relation(plan, inputs, program=program, recursion=recursion)
            case RemoteSource() | RecursiveReference() | WindowBounds() | Younger():
                raise InternalError(f"a plan to explain reads {describe(plan)}")
            case OnClose() | ToStream() | StreamWindow():
                raise unexplained(plan)
            case _:
                inputs = tuple(self._relation(child) for child in plan.inputs)
                made = Relation(plan, inputs, plain_operator(plan))
        self._relations[plan] = made
        return made

    def _recursion(self, program: Program) -> ReplicatedFixpoint:
        options = RecursionOptions(max_derivations=max(self._budget.left, 1))
        return ReplicatedFixpoint(
            program,
            LOCAL_ENGINES[Strategy.AUTO],
            site=_HERE,
            sites=(_HERE,),
            epoch=1,
            options=options,
        )

    def _push(self, leaves: Mapping[Leaf, Delta], *, start: bool) -> Delta:
        changes: dict[Plan, Delta] = {}
        by_relation: dict[int, Delta] = {}
        for plan, relation in self._relations.items():  # inputs come before their readers
            inputs = [by_relation[id(child)] for child in relation.inputs]
            if isinstance(plan, Scan | Window):
                delta = leaves.get(plan, {})
            elif relation.recursion is not None:
                delta = self._settled(relation.recursion, inputs)
            else:
                delta = self._applied(relation, inputs, start=start)
            changes[plan] = by_relation[id(relation)] = delta
            if delta:
                relation.apply(delta)
                self._budget.spend(len(delta), "evaluating the query")
        return changes[self.root.plan]

    def _applied(self, relation: Relation, inputs: list[Delta], *, start: bool) -> Delta:
        operator = relation.operator
        if operator is None:
            raise InternalError(f"{describe(relation.plan)} has no operator")
        total: Delta = dict(operator.initial()) if start else {}
        if isinstance(relation.plan, Join):
            self._spend_on_join(relation.plan, relation.inputs, inputs)
        for port, delta in enumerate(inputs):
            if delta:
                accumulate(total, operator.apply(port, delta))
        return total

    def _settled(self, recursion: ReplicatedFixpoint, inputs: list[Delta]) -> Delta:
        for port, delta in enumerate(inputs):
            recursion.apply(port, delta)
        before = recursion.counters.derivations
        try:
            delta = recursion.settle()
        except RecursionLimitError as error:
            raise ExplanationLimitError(
                f"the recursion is too large to explain: {error.message}",
                hint="ask about a smaller query: add a WHERE that keeps fewer rows",
            ) from error
        self._budget.spend(recursion.counters.derivations - before, "evaluating the recursion")
        return delta

    def _spend_on_join(
        self, join: Join, inputs: tuple[Relation, ...], changes: list[Delta]
    ) -> None:
        """Count the pairs a join is about to compare, before it does."""
        left, right = inputs
        pairs = 0
        for side, mine, theirs in ((0, changes[0], right.rows), (1, changes[1], left.rows)):
            if not mine or not theirs:
                continue
            if not join.keys:
                pairs += len(mine) * len(theirs)
                continue
            key = key_of(tuple(pair[side] for pair in join.keys))
            other = key_of(tuple(pair[1 - side] for pair in join.keys))
            counts = Counter(map(other, theirs))
            pairs += sum(counts[key(row)] for row in mine)
        self._budget.spend(pairs, "joining")
