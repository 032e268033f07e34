"""A price with its range, in all that a plan may cost."""

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
        energy: Microjoules a second of what travels, hop by hop.
        cpu: Milliseconds of processor a second at gateways and base sites.
        state: Bytes of memory of what these keep.
        engine: Milliseconds a second of Spark, or of the local executor of stored tables.
        derived: The part of `cpu` that recursions take.
    """

    bytes: float = 0.0
    low: float = 0.0
    high: float = 0.0
    messages: float = 0.0
    milliseconds: float = 0.0
    energy: float = 0.0
    cpu: float = 0.0
    state: float = 0.0
    engine: float = 0.0
    derived: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        """Return the price of both, which work at the same time."""
        return Cost(
            self.bytes + other.bytes,
            self.low + other.low,
            self.high + other.high,
            self.messages + other.messages,
            max(self.milliseconds, other.milliseconds),
            self.energy + other.energy,
            self.cpu + other.cpu,
            self.state + other.state,
            self.engine + other.engine,
            self.derived + other.derived,
        )

    def after(self, below: "Cost") -> "Cost":
        """Return the price of both where a change goes through `below` first."""
        # `dataclasses.replace` of the sum takes twice as long, and each plan that is compared asks.
        return Cost(
            self.bytes + below.bytes,
            self.low + below.low,
            self.high + below.high,
            self.messages + below.messages,
            self.milliseconds + below.milliseconds,
            self.energy + below.energy,
            self.cpu + below.cpu,
            self.state + below.state,
            self.engine + below.engine,
            self.derived + below.derived,
        )

    @property
    def ties(self) -> tuple[float, float, float, float]:
        """By which plans are compared that are equal by the metric.

        Bytes, most bytes, messages, and what recursions derive: the same links travel, whatever is
        asked for. Of two parts it is the sum.
        """
        sent = round(self.bytes, 6), round(self.high, 6), round(self.messages, 6)
        return (*sent, round(self.derived, 6))


NOTHING = Cost()
