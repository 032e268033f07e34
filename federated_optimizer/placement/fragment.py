"""Pieces: sub-plans that know where they can run, before fragments are numbered.

* `GatewayPiece`: the same plan at each of its gateways; the union of what they produce is right.
* `StaticPiece`: reads tables of one site only: the static engine's, or the coordinator's.
* `NetworkPiece`: a recursion that several gateways compute together.
* `BasePiece`: everything else; its `RemoteSource` leaves named `#n` are cuts to other pieces.
"""

from dataclasses import dataclass

from streamsql.algebra.operators import Plan


@dataclass(frozen=True, slots=True)
class Colocation:
    """Rows that agree on these columns (with rows of the same group) come from one gateway."""

    group: str
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GatewayPiece:
    """A sub-plan that every gateway of `sites` runs on its own rows.

    Attributes:
        joins: In-network joins inside, at most one.
        sources: Streams it reads, for reasons in words.
    """

    plan: Plan
    sites: tuple[str, ...]
    sources: tuple[str, ...]
    colocations: tuple[Colocation, ...] = ()
    joins: int = 0


@dataclass(frozen=True, slots=True)
class StaticPiece:
    """A sub-plan over the tables of one site."""

    plan: Plan
    tables: tuple[str, ...]
    site: str


@dataclass(frozen=True, slots=True)
class Spread:
    """How the rows of a base piece lie over the base sites.

    `single`: all at the first. Otherwise by hash of `columns`; with no columns somehow, each row
    at one site.
    """

    single: bool
    columns: tuple[int, ...] = ()


SINGLE = Spread(single=True)
SOMEHOW = Spread(single=False)


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

    `partition` is empty when they all go to the first of its sites.
    """

    piece: Piece
    partition: tuple[int, ...]
