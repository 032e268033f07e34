"""A correction of the clock is added to times that devices give, where it is asked for."""

from gateway.connectors.reading import Reading
from gateway.intake.validation import event_of
from gateway.testing import TEMPERATURES


def test_only_given_times_are_corrected() -> None:
    values = {"sensor": "s", "celsius": 1.0}
    assert event_of(Reading("temperature", values), TEMPERATURES, 1_000, 50).ts == 1_000
    assert event_of(Reading("temperature", values, 900), TEMPERATURES, 1_000, 50).ts == 950
    assert event_of(Reading("temperature", values, 900), TEMPERATURES, 1_000).ts == 900
    given = event_of(Reading("temperature", {**values, "ts": 800}), TEMPERATURES, 1_000, -50)
    assert (given.ts, given.row[2]) == (750, 750)
