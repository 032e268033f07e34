"""Pieces: sub-plans that know where they can run, before fragments are numbered.

* `GatewayPiece`: the same plan at each of its gateways; the union of what they produce is right.
  Its `RemoteSource` leaves are cuts to pieces of other gateways.
* `StaticPiece`: reads tables of one site only: the static engine's, or the coordinator's.
* `NetworkPiece`: a recursion that several gateways compute together.
* `BasePiece`: everything else; its `RemoteSource` leaves named `#n` are cuts to other pieces.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from federated_optimizer.costs.tree_shares import TreeShare
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Plan, Project


@dataclass(frozen=True, slots=True)
class Colocation:
    """Rows that agree on these columns (with rows of the same group) come from one gateway."""

    group: str
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GatewayPiece:
    """A sub-plan that every gateway of `sites` runs on its own rows.

    Attributes:
        joins: Joins inside, its own and those whose rows come from other gateways.
        sources: Streams it reads, for reasons in words.
        share: Of parts that gateways merge on their way to the base.
    """

    plan: Plan
    sites: tuple[str, ...]
    sources: tuple[str, ...]
    colocations: tuple[Colocation, ...] = ()
    joins: int = 0
    share: TreeShare | None = None


@dataclass(frozen=True, slots=True)
class StaticPiece:
    """A sub-plan over the tables of one site.

    Attributes:
        notes: For EXPLAIN; those of a piece that looks rows up by keys.
    """

    plan: Plan
    tables: tuple[str, ...]
    site: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of a base piece's rows over the base sites.

    `single`: all at the first. Otherwise by hash of `columns`; with no columns somehow, each row
    at one site.
    """

    single: bool
    columns: tuple[int, ...] = ()


SINGLE = Spread(single=True)
SOMEHOW = Spread(single=False)


def fits(have: Spread, wanted: Spread) -> bool:
    """Whether rows that lie one way lie the other way, too."""
    return wanted == SOMEHOW or have.single == wanted.single


def projected(spread: Spread, plan: Project) -> Spread:
    """Return how the rows of a projection lie."""
    where: dict[int, int] = {}
    for new, expression in enumerate(plan.expressions):
        if isinstance(expression, Column):
            where.setdefault(expression.position, new)
    return moved(spread, where)


def regrouped(spread: Spread, group: tuple[int, ...]) -> Spread:
    """Return how groups lie whose rows are together."""
    return moved(spread, {old: new for new, old in enumerate(group)})


def moved(spread: Spread, where: Mapping[int, int]) -> Spread:
    """Return how rows lie whose columns stand elsewhere: new positions by the old ones."""
    if spread.single or not all(c in where for c in spread.columns):
        return spread if spread.single else SOMEHOW
    return Spread(single=False, columns=tuple(where[c] for c in spread.columns))


@dataclass(frozen=True, slots=True)
class BasePiece:
    """A sub-plan for the base sites.

    Attributes:
        reasons: Why parts of it were not pushed further.
    """

    plan: Plan
    spread: Spread
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkPiece:
    """A sub-plan around a recursion that gateways compute together; each has a part of its rows.

    Attributes:
        plan: Its `RemoteSource` leaves named `#n` are cuts whose rows go to one of `sites` each.
        sites: In the order that tokens and shares count on.
        reasons: Why what is cut was not local.
        homes: Values with the index of the site where rows about them are kept.
    """

    plan: Plan
    sites: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    homes: tuple[tuple[str, int], ...] = ()


Piece = GatewayPiece | StaticPiece | NetworkPiece | BasePiece


@dataclass(frozen=True, slots=True)
class Cut:
    """A piece whose rows travel to another fragment.

    Attributes:
        partition: Columns by whose hash each row goes to one of its sites; without any all rows go
            to the first.
        to_all: Instead, every row goes to all of its sites.
        homes: Values with the index of the site where rows about them go instead.
        away: Share of the rows that leave their site, if it is known.
    """

    piece: Piece
    partition: tuple[int, ...]
    to_all: bool = False
    homes: tuple[tuple[str, int], ...] = ()
    away: float | None = None
