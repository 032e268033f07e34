"""Settings of the whole test suite: Hypothesis profiles, and what may run beside what.

`ci` (the default) is derandomized, so that a run on a slow shared machine can be repeated exactly;
`nightly` searches with fresh seeds and many more examples. Choose one with
`HYPOTHESIS_PROFILE=nightly make test`. `--update-golden` rewrites the files under `tests/golden`.
"""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SPARK = ("tests/static_engine/", "tests/conformance/")
ALONE = ("tests/benchmarks/test_options.py",)
"""Files whose tests share nothing, and take minutes together: each is given to whoever is free."""
OWN_SESSION = "tests/static_engine/lowering/laws/test_user_functions_on_spark.py"
"""Starts and stops a Spark session, of which a process has one: runs after all that share one."""

# Two busy cores make any wall-clock limit on one example meaningless.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", deadline=None, max_examples=2_000)
# That a changed program fails is all that a run of mutants wants to know: nothing is cut down.
settings.register_profile(
    "mutants",
    parent=settings.get_profile("ci"),
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)

NIGHTLY_SECONDS = 3_600
"""How long a property may take with the examples of `nightly`; others keep their limits."""


class FilesTogether(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each worker whole files: a file's tests share its federation, broker or browser.

    What runs in one Spark session counts as one file.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", maxsplit=1)[0]
        if file in ALONE:
            return nodeid
        return "spark" if file.startswith(SPARK) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesTogether | None:
    return FilesTogether(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files instead of comparing"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order what must be last; give properties the time that nightly numbers of examples take."""
    items.sort(key=lambda item: item.nodeid.startswith(OWN_SESSION))
    if PROFILE != "nightly":
        return
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.timeout(NIGHTLY_SECONDS), append=False)


@pytest.fixture(autouse=True)
def _logging_of_services() -> Iterator[None]:
    """Take away what a service's `main` has set up: its stream is the captured one of this test."""
    root = logging.getLogger()
    level, before = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in list(root.handlers):
        if type(handler) is logging.StreamHandler and handler not in before:
            root.removeHandler(handler)
