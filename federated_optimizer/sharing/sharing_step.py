"""The sharing step: parts of a new query are replaced by leaves that read what runs.

At every block of inner joins all parts that predicates connect are looked for, the largest first,
in whatever order the query would join them; of those found of one size the cheapest is taken, the
block is rewritten, and the rest is looked at again. What an answer still has to check becomes a
predicate of the rewritten block, so it does not keep the next part from being found. Other
operators are looked for as a whole, then below.

Selections of single sources are looked for if it is asked: else the plan of what remains decides
where their rows arrive.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from federated_optimizer.sharing.computation_index import (
    Allowed,
    ComputationIndex,
    Found,
    Rows,
    rows_told,
)
from federated_optimizer.sharing.forms.blocks import (
    Block,
    block_of,
    connected_parts,
    part_of,
    plan_of,
    with_part,
)
from federated_optimizer.sharing.node_offers import NO_OFFERS, Offer, is_node_leaf
from federated_optimizer.sharing.run_offers import is_selection_of_sources
from federated_optimizer.sharing.strategy import Strategy
from streamsql.algebra.operators import (
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    OnClose,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    StreamWindow,
    ToStream,
    Values,
    Window,
    is_open,
    walk_plan,
    with_inputs,
)

MAX_PARTS = 512
"""Parts of one block that are looked for; those of further sizes are left out."""

_WHOLE = (ToStream, OnClose, StreamWindow, Fixpoint)
"""Operators below which nothing is replaced: where their inputs are decides how they run."""

_NEVER = (Values, RemoteSource, RecursiveReference)
"""Leaves that are not looked for in any case."""

_LEAVES = (Scan, Window, *_NEVER)


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """A plan some parts of which others compute.

    Attributes:
        plan: With leaves in their place.
        used: The answers that are in it.
        unread: Those of `used` whose rows nobody can read yet: each has to become a node first.
    """

    plan: Plan
    used: tuple[Found, ...] = ()

    @property
    def unread(self) -> tuple[Found, ...]:
        """The answers over rows that nobody can read yet."""
        return tuple(found for found in self.used if not found.offer.is_readable)

    @property
    def offers(self) -> dict[str, Offer]:
        """The offers that it reads, by the name of their leaf."""
        found = {each.offer.name: each.offer for each in self.used}
        return found or dict(NO_OFFERS)

    @property
    def is_there(self) -> bool:
        """True if it reads rows of other runs alone: there is nothing to place."""
        leaves = [node for node in walk_plan(self.plan) if not node.inputs]
        return bool(leaves) and all(map(is_node_leaf, leaves))

    @property
    def is_thin(self) -> bool:
        """True if it chooses rows and columns of one other run, and computes nothing else."""
        plan = self.plan
        while isinstance(plan, Filter | Project):
            plan = plan.input
        return is_node_leaf(plan)


def share(  # noqa: PLR0913 - a plan, and what is looked for how
    plan: Plan,
    index: ComputationIndex,
    strategy: Strategy = Strategy.ALL,
    allowed: Allowed = lambda _offer: True,
    rows: Rows = rows_told,
    *,
    sources: bool = False,
) -> SharedPlan:
    """Return a plan whose parts are read from runs where they compute them.

    Args:
        plan: Normalized, over sources; by `Strategy.MATCH_PLAN` with its joins in their order.
        index: The offers.
        strategy: The parts that are looked for.
        allowed: Whether an offer may be read.
        rows: Of an offer.
        sources: Whether selections of single sources are looked for, too: what is above them is at
            the base then.
    """
    if strategy == Strategy.OFF or any(isinstance(n, ToStream | OnClose) for n in walk_plan(plan)):
        return SharedPlan(plan)
    sharing = _Sharing(index, strategy, allowed, rows, sources=sources)
    made = sharing.matched(plan) if strategy.matches_plan else sharing.shared(plan)
    read = {n.fragment for n in walk_plan(made) if isinstance(n, RemoteSource)}
    return SharedPlan(made, tuple(f for f in sharing.used if f.offer.name in read))


class _Sharing:
    def __init__(
        self,
        index: ComputationIndex,
        strategy: Strategy,
        allowed: Allowed,
        rows: Rows,
        *,
        sources: bool = False,
    ) -> None:
        self._index, self._strategy, self._sources = index, strategy, sources
        self._allowed, self._rows = allowed, rows
        self.used: list[Found] = []

    def matched(self, plan: Plan) -> Plan:
        """Return a plan whose own sub-plans are read where they are computed."""
        found = self._found(plan)
        if found is not None:
            return self._taken(found)
        if isinstance(plan, (*_LEAVES, *_WHOLE)):
            return plan
        return _over(plan, map(self.matched, plan.inputs))

    def shared(self, plan: Plan) -> Plan:
        """Return a plan any parts of which are read where they are computed."""
        if isinstance(plan, self._leaves):
            return plan
        found = self._found(plan)
        if found is not None:
            return self._taken(found)
        if isinstance(plan, _LEAVES):
            return plan
        if _is_of_block(plan):
            return self._block(plan, block_of(plan))
        return plan if isinstance(plan, _WHOLE) else _over(plan, map(self.shared, plan.inputs))

    def _block(self, plan: Plan, block: Block) -> Plan:
        if block.is_trivial:
            # It gives other names alone, or an expression is too long to be put into others.
            return _over(plan, map(self.shared, plan.inputs))
        made = self._with_inputs(self._with_parts(block))
        return plan if made is block else plan_of(made)

    def _with_parts(self, block: Block) -> Block:
        """Return a block with leaves for parts of several inputs, the largest first."""
        size, tried = len(block.inputs) - 1, 0
        while size > 1:
            best: tuple[Found, tuple[int, ...]] | None = None
            for numbers in connected_parts(block, size):
                tried += 1
                if tried > MAX_PARTS:
                    return block
                found = self._part(block, numbers)
                if found is not None and (best is None or found.order < best[0].order):
                    best = found, numbers
            if best is None:
                size -= 1
            else:
                block = with_part(block, best[1], self._taken(best[0]))
                size = min(size, len(block.inputs) - 1)
        return block

    def _with_inputs(self, block: Block) -> Block:
        """Return a block with leaves for inputs that are looked for, or for what is below them."""
        done: list[Plan] = []
        while True:
            inputs = enumerate(block.inputs)
            leaves = self._leaves
            waiting = ((i, c) for i, c in inputs if not isinstance(c, leaves) and c not in done)
            number, child = next(waiting, (0, None))
            if child is None:
                return block
            found = self._part(block, (number,))
            if found is not None:
                block = with_part(block, (number,), self._taken(found))
                continue
            made = self.shared(child)
            done += [child, made]
            if made is not child:
                inputs_now = tuple(made if c == child else c for c in block.inputs)
                block = block_of(plan_of(replace(block, inputs=inputs_now)))

    def _part(self, block: Block, numbers: tuple[int, ...]) -> Found | None:
        if any(is_node_leaf(block.inputs[i]) for i in numbers):
            return None
        part = part_of(block, numbers)
        return self._found(plan_of(part)) if self._index.may_have(part) else None

    def _found(self, plan: Plan) -> Found | None:
        if is_open(plan) or (is_selection_of_sources(plan) and not self._sources):
            return None
        if self._strategy == Strategy.NO_JOINS and _is_over_join(plan):
            return None
        return self._index.find(
            plan, self._allowed, self._rows, canonical=self._strategy.is_canonical
        )

    def _taken(self, found: Found) -> Plan:
        self.used.append(found)
        return found.plan

    @property
    def _leaves(self) -> tuple[type[Plan], ...]:
        """Operators that are not looked for."""
        return _NEVER if self._sources else _LEAVES


def _is_of_block(plan: Plan) -> bool:
    match plan:
        case Filter() | Project():
            return True
        case Join(kind=JoinKind.INNER):
            return True
        case _:
            return False


def _is_over_join(plan: Plan) -> bool:
    return sum(isinstance(node, Scan) for node in walk_plan(plan)) > 1


def _over(plan: Plan, inputs: Iterable[Plan]) -> Plan:
    made = tuple(inputs)
    return plan if made == plan.inputs else with_inputs(plan, made)
