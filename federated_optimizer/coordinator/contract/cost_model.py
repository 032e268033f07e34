"""Constants of the optimizer as the console sees them."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Measured(NamedTuple):
    """A measured number with its spread.

    Attributes:
        value: Median of several rounds.
        low: The first quartile.
        high: The third quartile.
        rounds: How many there were; the more, the surer.
    """

    value: float
    low: float
    high: float
    rounds: int = 1


class CostConstant(NamedTuple):
    """A constant that can be calibrated, as plans are made with it now.

    Attributes:
        name: By which it is set.
        words: The quantity, with its unit.
        low: The first quartile of what was measured; of a default the least that is usual.
        high: The third quartile, or the most.
        default: Taken where nobody has measured.
        measured: When, in microseconds since 1970; None: it is the default.
        origin: Of the value: who has measured, or where the default comes from.
    """

    name: str
    words: str
    place: str
    value: float
    low: float
    high: float
    default: float
    measured: int | None
    origin: str


class CostsApi(Protocol):
    """Constants of a federation's optimizer."""

    def all(self) -> tuple[CostConstant, ...]:
        """Return those that can be calibrated, and times of Spark where they were taken."""
        ...

    async def calibrate(
        self, values: Mapping[str, Measured], place: str
    ) -> tuple[CostConstant, ...]:
        """Take measured constants; plans are made with them from now on, also after a restart.

        Times that the static engine has taken of its own evaluations stay.

        Args:
            values: By name of the constant.
            place: "" for all sites, "gateways" or "base".

        Raises:
            BindingError: A number cannot be one of its constant; nothing has changed then.
            DeploymentError: The catalog cannot be written.
        """
        ...

    async def forget(self) -> int:
        """Go back to the defaults; return how many constants that were.

        Raises:
            DeploymentError: The catalog cannot be written.
        """
        ...

    async def hops(self, rounds: int) -> tuple[float, ...]:
        """Return milliseconds of messages from the coordinator over the broker to itself.

        Args:
            rounds: Messages, one after the other; at most 100.

        Raises:
            DeploymentError: The broker is away, or one did not come back.
        """
        ...
