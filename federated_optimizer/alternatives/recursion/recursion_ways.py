"""The ways of a recursion: those that are legal, and in words why others are not."""

from dataclasses import dataclass

from streamsql.algebra.choices import WITH_ANNOTATIONS, Copies, RecursionChoice, Strategy, Way
from streamsql.algebra.operators import Fixpoint
from streamsql.errors import UnsupportedError

NUMBERED = (Way.FLOOD, Way.WITNESS, Way.ANNOTATIONS, Way.CENTRE)
"""Ways as plans number them: the last one sends every base row to the base."""

DERIVED = (Way.WITNESS, Way.ANNOTATIONS)
"""Ways in which derived rows travel, with their provenance."""

AT_ONE_PLACE = (Strategy.KERNEL, Strategy.RANKED, Strategy.RECOMPUTE)
"""Strategies that compute from base rows and know nothing of derived rows from elsewhere."""

BASELINES = (Strategy.DRED, Strategy.SET)
"""Strategies that can ship derived rows, but do so only when asked: for comparison."""

MAX_SITES = 256
"""Sites that tokens can tell apart (`stream_engine.provenance.tokens`)."""


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways of a recursion.

    Attributes:
        legal: In the order of `NUMBERED`; never none.
        refused: The others, each with a reason in words.
        only: Why there is a single one; empty where there are several.
    """

    legal: tuple[Way, ...]
    refused: tuple[tuple[Way, str], ...] = ()
    only: str = ""


def ways_of(
    node: Fixpoint, sites: tuple[str, ...], bases: tuple[str, ...], together: str = ""
) -> Ways:
    """Return the ways of a recursion.

    Args:
        node: The recursion.
        sites: That would compute it together.
        bases: Base sites.
        together: Why it stays at one place unless the query asks for another way; or empty.

    Raises:
        UnsupportedError: The query asks for a strategy and a way that do not go together.
    """
    _check(node)
    single = _single(node, sites, bases, together)
    if single is not None:
        way, why = single
        return Ways((way,), tuple((other, why) for other in NUMBERED if other != way), why)
    reasons = {way: _refused(way, node.choice) for way in NUMBERED}
    return Ways(
        tuple(way for way, reason in reasons.items() if not reason),
        tuple((way, reason) for way, reason in reasons.items() if reason),
    )


def _single(
    node: Fixpoint, sites: tuple[str, ...], bases: tuple[str, ...], together: str
) -> tuple[Way, str] | None:
    """Return the only way, and why there is no other; None if there are several."""
    choice = node.choice
    if node.copies != Copies.ONE:
        return Way.CENTRE, "UNION ALL counts copies, which needs one site"
    if together and choice.way == Way.AUTO:
        return Way.CENTRE, together
    if len(bases) > 1 and choice.way == Way.AUTO and _ships(choice):
        return Way.WITNESS, f"{len(bases)} base sites share the work: each keeps a part"
    if not 1 < len(sites) <= MAX_SITES:
        reason = "fewer than two gateways have its inputs, or more than tokens can distinguish"
        return Way.CENTRE, reason
    if choice.way != Way.AUTO:
        return choice.way, "the query sets it"
    return None


def _refused(way: Way, choice: RecursionChoice) -> str:
    """Return why a recursion that has several ways does not have this one, or nothing."""
    if way in DERIVED and choice.strategy in AT_ONE_PLACE:
        return f"strategy = '{choice.strategy}' computes from base rows only"
    if way in DERIVED and choice.strategy in BASELINES:
        return f"strategy = '{choice.strategy}' ships derived rows only if the query sets the way"
    if way == Way.FLOOD and _keeps_provenance(choice):
        return "it ships base rows, and the query sets options of shipped derived rows"
    return ""


def _check(node: Fixpoint) -> None:
    choice = node.choice
    if choice.strategy in AT_ONE_PLACE and choice.way in DERIVED:
        raise UnsupportedError(
            f"way = '{choice.way}' ships derived rows, but strategy = '{choice.strategy}' "
            "computes from base rows only",
            hint="choose way = 'flood' or 'centre', or strategy = 'absorption'",
        )
    if choice.way == Way.FLOOD and _keeps_provenance(choice):
        raise UnsupportedError(
            "way = 'flood' ships base rows, but the options strategy, ship, annotations "
            "and order apply to shipped derived rows",
            hint="choose way = 'witness' or 'annotations', or strategy = 'ranked'",
        )
    if node.copies != Copies.ONE:
        _check_copies(choice)


def _check_copies(choice: RecursionChoice) -> None:
    wanted = {choice.strategy, choice.ship, choice.annotations, choice.order} - {"auto"}
    if wanted or choice.way not in (Way.AUTO, Way.CENTRE):
        raise UnsupportedError(
            "UNION ALL in a recursion counts copies at one site: the options strategy, "
            "way, ship, annotations and order apply to sets",
            hint="remove these options, or write UNION",
        )


def _keeps_provenance(choice: RecursionChoice) -> bool:
    """Whether the query asks for annotations, by the strategy or by saying how they are kept."""
    if choice.strategy == Strategy.AUTO:
        return {choice.ship, choice.annotations, choice.order} != {"auto"}
    return choice.strategy in WITH_ANNOTATIONS


def _ships(choice: RecursionChoice) -> bool:
    """Whether the strategy ships derived rows without being asked."""
    return choice.strategy not in AT_ONE_PLACE + BASELINES
