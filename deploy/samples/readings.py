"""Functions and an aggregate of one's own: an example to copy.

    CREATE FUNCTION dew_point(celsius DOUBLE, humidity DOUBLE) RETURNS DOUBLE
      AS 'deploy.samples.readings:dew_point';
    CREATE AGGREGATE harmonic_mean(value DOUBLE) RETURNS DOUBLE
      AS 'deploy.samples.readings:HarmonicMean';

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
