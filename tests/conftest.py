"""Settings of the whole test suite: Hypothesis profiles.

`ci` (the default) is derandomized, so that a run on a slow shared machine can be repeated exactly;
`nightly` searches with fresh seeds and many more examples. Choose one with
`HYPOTHESIS_PROFILE=nightly make test`. `--update-golden` rewrites the files under `tests/golden`.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

# Two busy cores make any wall-clock limit on one example meaningless.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files instead of comparing"
    )
