"""A price with its range."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of a plan or a part of it.

    Attributes:
        bytes: A second over the network; the middle of the range.
        low: The least by the estimates' range.
        high: The most.
        messages: A second.
        milliseconds: From a change of a row to its effect at the base.
    """

    bytes: float = 0.0
    low: float = 0.0
    high: float = 0.0
    messages: float = 0.0
    milliseconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        """Return the price of both, which work at the same time."""
        return Cost(
            self.bytes + other.bytes,
            self.low + other.low,
            self.high + other.high,
            self.messages + other.messages,
            max(self.milliseconds, other.milliseconds),
        )

    @property
    def order(self) -> tuple[float, float, float, float]:
        """By which plans are compared: bytes, the most of them, messages, time."""
        return (
            round(self.bytes, 6),
            round(self.high, 6),
            round(self.messages, 6),
            round(self.milliseconds, 6),
        )


NOTHING = Cost()
