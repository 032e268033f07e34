"""Functions and aggregates of one's own: an example to copy.

    CREATE FUNCTION dew_point(celsius DOUBLE, humidity DOUBLE) RETURNS DOUBLE
      AS 'deploy.samples.readings:dew_point';
    CREATE AGGREGATE harmonic_mean(value DOUBLE) RETURNS DOUBLE
      AS 'deploy.samples.readings:HarmonicMean';
    CREATE AGGREGATE peak(value DOUBLE) RETURNS DOUBLE MERGED BY MAX
      AS 'deploy.samples.readings:Peak';

Every site that may run them lists the module: PANDO_FUNCTIONS=deploy.samples.readings, or
`pando up --functions deploy.samples.readings`. What is called is in `streamsql.algebra
.user_functions`: an exception means NULL, and is counted.
"""

import math
from fractions import Fraction

State = tuple[int, Fraction]


def dew_point(celsius: float, humidity: float) -> float:
    """Return the dew point in degrees Celsius, by the Magnus formula.

    Args:
        celsius: Temperature of the air.
        humidity: Relative humidity in percent, above 0.

    Raises:
        ValueError: The air is dry or the humidity negative: there is no dew point.

    Examples:
        >>> round(dew_point(20.0, 50.0), 2)
        9.26
    """
    ratio = math.log(humidity / 100) + 17.62 * celsius / (243.12 + celsius)
    return 243.12 * ratio / (17.62 - ratio)


class HarmonicMean:
    """The harmonic mean; of speeds over equal ways it is the mean speed.

    The state is the number of values and the sum of their reciprocals, exact, so that values can
    be taken away again.
    """

    def init(self) -> State:
        """Return the state of no values."""
        return (0, Fraction(0))

    def step(self, state: State, value: float) -> State:
        """Return the state with one more value.

        Raises:
            ZeroDivisionError: The value is 0: it is left out.
        """
        return (state[0] + 1, state[1] + 1 / Fraction(value))

    def retract(self, state: State, value: float) -> State:
        """Return the state without a value."""
        return (state[0] - 1, state[1] - 1 / Fraction(value))

    def merge(self, state: State, other: State) -> State:
        """Return the state of both."""
        return (state[0] + other[0], state[1] + other[1])

    def final(self, state: State) -> float | None:
        """Return the mean, or None where there is none."""
        return float(state[0] / state[1]) if state[1] else None


class Peak:
    """The greatest distance from 0, as of a vibration; of parts it is the greatest of theirs.

    The state is how often each distance is there, so that the greatest can be taken away, too.
    """

    def init(self) -> dict[float, int]:
        """Return the state of no values."""
        return {}

    def step(self, state: dict[float, int], value: float) -> dict[float, int]:
        """Return the state with one more value."""
        return self.merge(state, {abs(value): 1})

    def retract(self, state: dict[float, int], value: float) -> dict[float, int]:
        """Return the state without a value."""
        return self.merge(state, {abs(value): -1})

    def merge(self, state: dict[float, int], other: dict[float, int]) -> dict[float, int]:
        """Return the state of both."""
        for distance, number in other.items():
            state[distance] = state.get(distance, 0) + number
            if not state[distance]:
                del state[distance]
        return state

    def final(self, state: dict[float, int]) -> float | None:
        """Return the greatest distance, or None where there is no value: MERGED BY needs that."""
        return max(state, default=None)
