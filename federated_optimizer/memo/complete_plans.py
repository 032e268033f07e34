"""Complete plans of a memo as they are cut."""

from federated_optimizer.alternatives.gateway_pieces import TwoSided
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.method import CUT, TO_GATEWAYS, Method
from federated_optimizer.cutting.taken_plans import Taken
from federated_optimizer.memo.groups import Wanted
from federated_optimizer.memo.memo import Memo, Selection
from streamsql.algebra.operators import with_inputs


def taken_plan(memo: Memo, selection: Selection, kept: Heuristics = ALL) -> Taken:
    """Return a complete plan: each occurrence as the group that is wanted there is computed.

    Args:
        memo: Of the query.
        selection: The complete plan.
        kept: Rules by which the cutter does not take other methods where none is chosen.
    """
    known: dict[Wanted, Taken] = {}

    def of(wanted: Wanted) -> Taken:
        if wanted not in known:
            known[wanted] = made(wanted)
        return known[wanted]

    def made(wanted: Wanted) -> Taken:
        alternative = selection[wanted]
        parts = tuple(map(of, alternative.children))
        if alternative.method == Method.SHIP or alternative.is_rewritten:
            return parts[0]
        plan, method = memo.plan(wanted), alternative.method
        # Without the heuristics gateways might join what other gateways have joined.
        is_open = len(memo.alternatives[wanted]) > 1 or (not kept and isinstance(plan, TwoSided))
        chosen = method if method in TO_GATEWAYS or (method in CUT and is_open) else None
        if not parts:
            return Taken(plan, chosen)
        if method == Method.KEYS:  # of the stored table nothing was chosen
            (asking,) = alternative.children
            place = plan.inputs.index(memo.plan(asking))
            below = [Taken(child) for child in plan.inputs]
            below[place] = parts[0]
            parts = tuple(below)
        plans = tuple(part.plan for part in parts)
        return Taken(plan if plans == plan.inputs else with_inputs(plan, plans), chosen, parts)

    return of(memo.whole)
