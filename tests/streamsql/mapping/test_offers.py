"""What a device offers fits into a message, whatever the device says."""

from streamsql.mapping.offers import (
    MAX_RECORD_VALUES,
    OfferedRecord,
    OfferedValue,
    within_bounds,
)
from streamsql.wire.bounds import is_bounded
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.trial_messages import TrialReport


def test_a_record_within_bounds_passes_the_decoder() -> None:
    odd = OfferedValue("n" * 5_000, "a", unit="u" * 5_000, sample="s" * 5_000)
    values = (
        odd,
        OfferedValue("lost", "x" * 5_000),
        OfferedValue("nan", "b", sample=float("nan")),
        OfferedValue("big", "c", sample=2**70),
        *(OfferedValue(f"v{n}", f"{n}") for n in range(500)),
    )
    record = within_bounds(OfferedRecord("r" * 5_000, values), 1_000)
    assert len(record.values) == MAX_RECORD_VALUES
    report = TrialReport("t", 0, offers=(record,))
    assert decode_packed(encode_packed(report), TrialReport) == report
    assert [value.address for value in record.values[:3]] == ["a", "b", "c"]
    assert is_bounded(TrialReport)


def test_no_more_than_is_left_is_taken() -> None:
    record = OfferedRecord("r", tuple(OfferedValue(f"v{n}", f"{n}") for n in range(10)))
    assert len(within_bounds(record, 3).values) == 3
