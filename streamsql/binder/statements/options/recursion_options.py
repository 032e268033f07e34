"""`WITH (strategy = '…', …)` behind a query: how its recursions are maintained.

The options of a reader win over those of the view that it reads, option by option: the answer is
the same, and the reader knows the machines. `'auto'` leaves a choice to the optimizer. An option
without effect next to the others is a warning: a comparison of strategies would compare nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from streamsql.algebra.choices import (
    WITH_ANNOTATIONS,
    Annotations,
    Compiled,
    DiagramOrder,
    Shipping,
    Strategy,
    Way,
)
from streamsql.algebra.operators import Fixpoint, Plan, RecursionChoice, transform_up, walk_plan
from streamsql.binder.names.environment import Binding
from streamsql.binder.statements.options import metric_option, plan_option
from streamsql.binder.statements.options.run_options import RUN_OPTIONS
from streamsql.data.durations import parse_duration
from streamsql.errors import BindingError, UnsupportedError
from streamsql.syntax.cursor import did_you_mean, nearest
from streamsql.syntax.statements import Option, Query

VALUES: Mapping[str, tuple[str, ...]] = {
    "strategy": tuple(Strategy),
    "way": tuple(Way),
    "ship": ("auto", *Shipping),
    "order": tuple(DiagramOrder),
    "annotations": (Annotations.AUTO, Annotations.DNF, Annotations.BDD),
    "compiled": tuple(Compiled),
}
"""The options that name one of several ways, with the names."""

_NUMBERS: Mapping[str, str] = {
    "width": "width = '64': max supports of an annotation",
    "capacity": "capacity = '100': max rows with held-back alternatives before all are sent",
}
"""The options that are a whole number, with a hint."""

NAMES = (*VALUES, *_NUMBERS)
ALL_NAMES = (*NAMES, *RUN_OPTIONS, plan_option.NAME, metric_option.NAME)
"""All options of a query; views have those of recursions."""

MAX_NUMBER = 1_000_000

_TRUTH = {"true": "yes", "false": "no"}


def with_choice(plan: Plan, query: Query, binding: Binding, view: str = "") -> Plan:
    """Return the plan with a query's options in all its recursions.

    Without a recursion they have no effect, which is a warning; so is one that others overrule.
    """
    chosen = _chosen_fields(query.options, NAMES if view else ALL_NAMES)
    if not any(isinstance(node, Fixpoint) for node in walk_plan(plan)):
        whose = f"view {view!r}" if view else "this query"
        names = ", ".join(option.name for option in query.options)
        binding.warn(
            f"{names}: these options choose how recursions are maintained, so they have no "
            f"effect: {whose} has no recursion"
        )
        return plan
    plan = transform_up(plan, lambda node: _chosen(node, chosen))
    for node in walk_plan(plan):
        for warning in idle_options(node.choice) if isinstance(node, Fixpoint) else ():
            binding.warn(warning)
    return plan


def _chosen(node: Plan, chosen: Mapping[str, Any]) -> Plan:
    if not isinstance(node, Fixpoint):
        return node
    choice = msgspec.structs.replace(node.choice, **chosen)
    return msgspec.structs.replace(node, choice=choice)


def _chosen_fields(options: tuple[Option, ...], known: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a `RecursionChoice` that options set; `known` are those that exist."""
    return {option.name: _field(option, known) for option in options}


def _field(option: Option, known: tuple[str, ...]) -> str | int:
    if option.name not in NAMES:
        raise BindingError(
            f"a query has no option {option.name!r:.40}",
            span=option.span,
            hint=did_you_mean(option.name, known, f"options are {', '.join(known)}"),
            code="unknown_option",
        )
    if option.name in _NUMBERS:
        return _number(option)
    value = option.value.strip().lower()
    value = _TRUTH.get(value, value) if option.name == "compiled" else value
    if option.name == "strategy" and value == "counting":
        raise UnsupportedError(
            "counting cannot maintain a recursion: rows of a cycle keep each other's "
            "counts above zero after their last outside support is deleted",
            span=option.value_span,
            hint=f"strategies are {', '.join(VALUES['strategy'])}",
            code="bad_option",
        )
    known = VALUES[option.name]
    if value in known:
        return known[known.index(value)]
    if option.name == "ship":
        return _interval(option)
    close = nearest(value, known)
    hint = f"{option.name} is one of {', '.join(known)}"
    raise BindingError(
        f"there is no {option.name} {option.value!r:.40}",
        span=option.value_span,
        hint=f"did you mean '{close}'? {hint}" if close else hint,
        code="bad_option",
    )


def _number(option: Option) -> int:
    text = option.value.strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    if text.lower() == "auto":
        return 0
    if not 1 <= number <= MAX_NUMBER:
        raise BindingError(
            f"a {option.name} is a whole number from 1 to {MAX_NUMBER}, not {option.value!r:.40}",
            span=option.value_span,
            hint=_NUMBERS[option.name],
            code="bad_option",
        )
    return number


def _interval(option: Option) -> str:
    """Return an interval in microseconds, as `RecursionChoice` has it: digits."""
    try:
        micros = parse_duration(option.value)
    except ValueError:
        micros = 0
    if micros <= 0:
        known = ", ".join(VALUES["ship"])
        raise BindingError(
            f"there is no ship {option.value!r:.40}",
            span=option.value_span,
            hint=f"ship is one of {known}, or an interval such as '250 ms'",
            code="bad_option",
        )
    return str(micros)


_WITHOUT_ANNOTATIONS = (
    Strategy.KERNEL,
    Strategy.RANKED,
    Strategy.RECOMPUTE,
    Strategy.DRED,
    Strategy.SET,
)
_OF_ANNOTATIONS = ("ship", "annotations", "order", "width", "capacity")


def idle_options(choice: RecursionChoice) -> Iterator[str]:
    """Yield a warning for every option that changes nothing.

    Examples:
        >>> list(idle_options(RecursionChoice(strategy=Strategy.RANKED, order=DiagramOrder.DFS)))
        ["order has no effect: strategy = 'ranked' keeps no annotations"]
        >>> list(idle_options(RecursionChoice(annotations=Annotations.BDD, order=DiagramOrder.DFS)))
        []
    """
    given = [name for name in _OF_ANNOTATIONS if _is_given(choice, name)]
    strategy = choice.strategy
    if strategy in _WITHOUT_ANNOTATIONS:
        yield from _without_effect(given, f"strategy = '{strategy}' keeps no annotations")
    elif strategy == Strategy.RELATIVE:
        named = [name for name in given if name in ("annotations", "order")]
        yield from _without_effect(named, "strategy = 'relative' has annotations of its own")
        yield from _idle_with_prompt_shipping(choice)
        for name in ("way", "ship"):
            if getattr(choice, name) == "witness":
                reason = "strategy = 'relative' has no single witness and ships lazily"
                yield from _without_effect([name], reason)
    else:
        yield from _idle_with_absorption(choice, given)
        yield from _idle_with_prompt_shipping(choice)
    runs_kernels = strategy == Strategy.KERNEL or (
        strategy == Strategy.AUTO and not {*given} - {"width", "capacity"}
    )
    if choice.compiled == Compiled.YES and not runs_kernels:
        yield from _without_effect(["compiled"], "no kernel is used with the other options")


def _idle_with_absorption(choice: RecursionChoice, given: list[str]) -> Iterator[str]:
    if choice.way == Way.WITNESS and choice.ship not in ("auto", Shipping.WITNESS):
        yield from _without_effect(["ship"], "way = 'witness' sends one combination of tokens")
    if choice.way == Way.WITNESS or choice.ship == Shipping.WITNESS:
        idle = ["order"] if "order" in given else []
        if choice.annotations == Annotations.BDD:
            idle = ["annotations", *idle]
        yield from _without_effect(idle, "a witness is one combination of tokens, always listed")
    elif "order" in given and choice.annotations != Annotations.BDD:
        reason = "it applies to decision diagrams only (annotations = 'bdd')"
        yield from _without_effect(["order"], reason)


def _idle_with_prompt_shipping(choice: RecursionChoice) -> Iterator[str]:
    """A capacity bounds what is held back, and only lazy shipping holds anything back."""
    keeps = choice.way == Way.ANNOTATIONS or choice.strategy in WITH_ANNOTATIONS
    lazy = (
        choice.ship == Shipping.LAZY or choice.ship.isdecimal() or (choice.ship == "auto" and keeps)
    )
    if choice.capacity and (not lazy or choice.way == Way.WITNESS):
        reason = "only lazy shipping holds rows back: write way = 'annotations' or ship = 'lazy'"
        yield from _without_effect(["capacity"], reason)


def _is_given(choice: RecursionChoice, name: str) -> bool:
    value = getattr(choice, name)
    return value not in (0, "auto")


def _without_effect(names: list[str], reason: str) -> Iterator[str]:
    if names:
        verb = "has" if len(names) == 1 else "have"
        yield f"{', '.join(names)} {verb} no effect: {reason}"
