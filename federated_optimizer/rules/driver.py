"""Run rules in order until nothing changes, checking the schema after each of them."""

from collections.abc import Callable, Sequence

from federated_optimizer.rules.rule import Rule
from streamsql.algebra.operators import Plan
from streamsql.errors import InternalError

MAX_PASSES = 20

Observer = Callable[[str, Plan], None]


def run_rules(plan: Plan, rules: Sequence[Rule], *, observe: Observer | None = None) -> Plan:
    """Return the plan after all rules, repeated until a pass changes nothing.

    Args:
        plan: Any plan.
        rules: In the order to apply them.
        observe: Called with the name of each rule that changed the plan, and the new plan.

    Raises:
        InternalError: A rule changed the schema, or the rules do not come to rest.
    """
    for _ in range(MAX_PASSES):
        before = plan
        for rule in rules:
            plan = _applied(rule, plan, observe)
        if plan == before:
            return plan
    names = ", ".join(rule.name for rule in rules)
    raise InternalError(f"rules {names} still change the plan after {MAX_PASSES} passes")


def _applied(rule: Rule, plan: Plan, observe: Observer | None) -> Plan:
    rewritten = rule.apply(plan)
    if rewritten.schema != plan.schema:
        raise InternalError(
            f"rule {rule.name} changed the schema from {plan.schema} to {rewritten.schema}"
        )
    if observe is not None and rewritten != plan:
        observe(rule.name, rewritten)
    return rewritten
