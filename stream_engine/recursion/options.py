"""How a fixpoint is maintained, and what it counts."""

from dataclasses import dataclass

from stream_engine.recursion.absorption import Shipping
from stream_engine.recursion.placement import OwnerFunction
from streamsql.errors import UnsupportedError
from streamsql.wire.partitioning import site_of


@dataclass(frozen=True, slots=True)
class RecursionOptions:
    """How a fixpoint is maintained. The view is the same whatever the options.

    Attributes:
        shipping: When alternative derivations are sent on.
        annotations: "dnf" or "bdd".
        width: Bound on the buffered supports of a row; beyond it rows are derived again instead.
        max_derivations: Bound on the derivations of one settle.
        strategy: How deletions are handled.
        owner: Chooses the site of a key.

    Raises:
        UnsupportedError: The strategy is unknown.
    """

    shipping: Shipping = Shipping.LAZY
    annotations: str = "dnf"
    width: int = 64
    max_derivations: int = 20_000_000
    strategy: str = "absorption"
    owner: OwnerFunction = site_of

    def __post_init__(self) -> None:
        """Refuse what there is not."""
        if self.strategy != "absorption":
            raise UnsupportedError(
                f"no recursion strategy {self.strategy!r:.40}", hint="write absorption"
            )


@dataclass(slots=True)
class FixpointCounters:
    """Work done since the start, for EXPLAIN ANALYZE and benchmarks.

    Attributes:
        settles: Calls of `settle`.
        rounds: Rounds of semi-naive evaluation.
        derivations: Rule results, absorbed ones too.
        kills: Tokens that died.
        touched: Rows whose sent annotation mentioned a dead token.
        rederived: Rows derived again because alternatives had been dropped.
        received_rows: Rows from other sites.
        sent_rows: Rows to other sites.
        sent_kills: Dead tokens announced, counted per receiver.
        sent_bytes: Bytes of annotations sent.
    """

    settles: int = 0
    rounds: int = 0
    derivations: int = 0
    kills: int = 0
    touched: int = 0
    rederived: int = 0
    received_rows: int = 0
    sent_rows: int = 0
    sent_kills: int = 0
    sent_bytes: int = 0
