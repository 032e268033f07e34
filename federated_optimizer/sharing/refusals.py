"""Refusals of rules."""

from collections.abc import Callable

from streamsql.algebra.operators import Plan

Rule = Callable[[Plan, Plan, Plan], Plan]


class NotSharedError(Exception):
    """A plan is not answered from an offer; the text says why."""


def proven(rule: Rule) -> Callable[[Plan, Plan, Plan], Plan | None]:
    """Return a rule that answers None where the given one refuses."""

    def answer(wanted: Plan, offered: Plan, leaf: Plan) -> Plan | None:
        try:
            return rule(wanted, offered, leaf)
        except NotSharedError:
            return None

    return answer
