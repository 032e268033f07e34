"""Options of a recursion that have no effect beside the others, with the reason.

An option that is taken and then ignored would make a comparison of strategies compare nothing.
"""

from collections.abc import Iterator

from streamsql.algebra.operators import RecursionChoice

_WITHOUT_ANNOTATIONS = ("kernel", "ranked", "recompute", "dred", "set")
_OF_ANNOTATIONS = ("ship", "annotations", "order", "width", "capacity")


def idle_options(choice: RecursionChoice) -> Iterator[str]:
    """Yield a warning for every option that changes nothing.

    Examples:
        >>> list(idle_options(RecursionChoice(strategy="ranked", order="dfs")))
        ["order has no effect: strategy = 'ranked' keeps no annotations"]
        >>> list(idle_options(RecursionChoice(annotations="bdd", order="dfs")))
        []
    """
    said = [name for name in _OF_ANNOTATIONS if _is_said(choice, name)]
    strategy = choice.strategy
    if strategy in _WITHOUT_ANNOTATIONS:
        yield from _without_effect(said, f"strategy = '{strategy}' keeps no annotations")
    elif strategy == "relative":
        named = [name for name in said if name in ("annotations", "order")]
        yield from _without_effect(named, "strategy = 'relative' has annotations of its own")
        yield from _beside_prompt_shipping(choice)
        for name in ("way", "ship"):
            if getattr(choice, name) == "witness":
                reason = "strategy = 'relative' has no single witness and ships lazily"
                yield from _without_effect([name], reason)
    else:
        yield from _beside_absorption(choice, said)
        yield from _beside_prompt_shipping(choice)
    runs_kernels = strategy == "kernel" or (
        strategy == "auto" and not {*said} - {"width", "capacity"}
    )
    if choice.compiled == "yes" and not runs_kernels:
        yield from _without_effect(["compiled"], "no kernel is used with the other options")


def _beside_absorption(choice: RecursionChoice, said: list[str]) -> Iterator[str]:
    if choice.way == "witness" and choice.ship not in ("auto", "witness"):
        yield from _without_effect(["ship"], "way = 'witness' sends one combination of tokens")
    if "witness" in (choice.way, choice.ship):
        idle = ["order"] if "order" in said else []
        if choice.annotations == "bdd":
            idle = ["annotations", *idle]
        yield from _without_effect(idle, "a witness is one combination of tokens, always listed")
    elif "order" in said and choice.annotations != "bdd":
        reason = "it applies to decision diagrams only; add annotations = 'bdd'"
        yield from _without_effect(["order"], reason)


def _beside_prompt_shipping(choice: RecursionChoice) -> Iterator[str]:
    """A capacity bounds what is held back, and only lazy shipping holds anything back."""
    keeps = choice.way == "annotations" or choice.strategy in ("absorption", "relative")
    lazy = choice.ship == "lazy" or choice.ship.isdecimal() or (choice.ship == "auto" and keeps)
    if choice.capacity and (not lazy or choice.way == "witness"):
        reason = "only lazy shipping holds rows back: write way = 'annotations' or ship = 'lazy'"
        yield from _without_effect(["capacity"], reason)


def _is_said(choice: RecursionChoice, name: str) -> bool:
    value = getattr(choice, name)
    return value not in (0, "auto")


def _without_effect(names: list[str], reason: str) -> Iterator[str]:
    if names:
        verb = "has" if len(names) == 1 else "have"
        yield f"{', '.join(names)} {verb} no effect: {reason}"
