"""Rewrite rules: run in order until nothing changes, with the schema checked after each of them."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamsql.algebra.operators import Plan
from streamsql.errors import InternalError

log = logging.getLogger(__name__)

MAX_PASSES = 20


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rewrite of whole plans.

    `apply` must keep the bag of rows the plan denotes and its schema, and must be idempotent:
    `apply(apply(p)) == apply(p)`. The driver checks the schema after every application.
    """

    name: str
    apply: Callable[[Plan], Plan]


def run_rules(plan: Plan, rules: Sequence[Rule]) -> Plan:
    """Return the plan after all rules, repeated until a pass changes nothing.

    Rules that do not come to rest are named in the log; the plan after the last pass is right.

    Raises:
        InternalError: A rule changed the schema.
    """
    made: dict[str, Plan] = {}
    for _ in range(MAX_PASSES):
        before = plan
        for rule in rules:
            if made.get(rule.name) != plan:  # else the rule, being idempotent, changes nothing
                plan = made[rule.name] = _applied(rule, plan)
        if plan == before:
            return plan
    names = ", ".join(rule.name for rule in rules)
    log.warning("rules %s still change the plan after %d passes", names, MAX_PASSES)
    return plan


def _applied(rule: Rule, plan: Plan) -> Plan:
    rewritten = rule.apply(plan)
    if rewritten.schema != plan.schema:
        raise InternalError(
            f"rule {rule.name} changed the schema from {plan.schema} to {rewritten.schema}"
        )
    return rewritten
