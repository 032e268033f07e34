"""Complete plans in words."""

from federated_optimizer.alternatives.method import TO_GATEWAYS, Method
from federated_optimizer.memo.memo import Memo, Selection
from federated_optimizer.memo.properties import STORED
from streamsql.algebra.explain import describe
from streamsql.algebra.operators import Filter, Fixpoint, Plan, Project, Scan, Window

MAX_WORDS = 5
"""Operators that the words of a plan name."""


def plan_words(memo: Memo, selection: Selection) -> str:
    """Return where the operators are that had a choice, those nearest to the result first.

    Of what is at the base only what combines rows is named; the rest is there because of it.
    """
    chosen = {wanted for wanted in selection if len(memo.alternatives[wanted]) > 1}
    below = {
        child
        for wanted in chosen
        if selection[wanted].method == Method.BASE
        for child in selection[wanted].children
    }
    found: list[str] = []
    for wanted, alternative in selection.items():
        plan = memo.plan(wanted)
        match alternative.method:
            case Method.ORDER | Method.BOUND:
                found.append(alternative.words)
            case Method.PARTS | Method.TREE | Method.KEYS | Method.EARLY:
                found.append(f"{describe(plan)}: {alternative.words}")
            case Method.CENTRE | Method.FLOOD | Method.WITNESS | Method.ANNOTATIONS:
                if wanted in chosen and isinstance(plan, Fixpoint):
                    found.append(f"recursion {plan.name} by {alternative.method}")
            case method if method in TO_GATEWAYS:
                found.append(f"{describe(plan)}: {alternative.words}")
            case Method.SHIP if any(
                child.group == join
                for child in alternative.children
                for join, _ in child.properties.joined
            ):
                pass  # its own words tell where it is
            case Method.SHIP if wanted in chosen or wanted in below:
                stored = any(child.properties == STORED for child in alternative.children)
                found.append(_shipped(plan, "the static engine" if stored else "the gateways"))
            case Method.BASE if wanted in chosen and not isinstance(plan, Filter | Project):
                found.append(f"{describe(plan)} at the base")
            case _:
                pass
    shown = list(dict.fromkeys(found))
    more = len(shown) - MAX_WORDS
    return "; ".join(shown[:MAX_WORDS] + ([f"and {more} more"] if more > 0 else []))


def _shipped(plan: Plan, sites: str) -> str:
    match plan:
        case Scan(source=source) | Window(input=Scan(source=source)):
            return f"all of {source} sent"
        case _:
            return f"{describe(plan)} at {sites}"
