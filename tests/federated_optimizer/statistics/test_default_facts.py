"""Defaults lie in the ranges that are stated."""

from federated_optimizer.statistics.default_facts import DEFAULTS


def test_defaults_lie_in_their_ranges_and_have_names() -> None:
    assert len({default.words for default in DEFAULTS}) == len(DEFAULTS) >= 20
    for default in DEFAULTS:
        assert 0 < default.low <= default.value <= default.high
        assert default.why
