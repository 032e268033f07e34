"""Settings of the whole test suite: Hypothesis profiles, and what may run beside what.

`ci` (the default) is derandomized, so that a run on a slow shared machine can be repeated exactly;
`nightly` searches with fresh seeds and many more examples. Choose one with
`HYPOTHESIS_PROFILE=nightly make test`. `--update-golden` rewrites the files under `tests/golden`.
"""

import gc
import logging
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SPARK = ("tests/static_engine/", "tests/conformance/")
OWN_SESSION = "tests/static_engine/lowering/laws/test_user_functions_on_spark.py"
"""Starts and stops a Spark session, of which a process has one: runs after all that share one."""
OWN_PROCESSES = (
    "tests/static_engine/changing/",
    "tests/static_engine/laws/",
    "tests/static_engine/sources/",
    "tests/static_engine/spark/laws/test_connect_server.py",
    "tests/static_engine/spark/laws/test_spark_workers.py",
    "tests/static_engine/spark/test_spark_session.py",
    "tests/static_engine/spark/test_stuck_tasks.py",
)
"""In the folders of Spark, but without the shared session: they start processes, or no Spark."""
ALONE = (
    "tests/benchmarks/test_options.py",
    "tests/end_to_end/test_credentials_under_load.py",
    "tests/end_to_end/test_real_input.py",
    "tests/end_to_end/test_secured_federation.py",
    "tests/gateway/laws/test_closing_windows.py",
    "tests/gateway/laws/test_declared_processes.py",
)
"""Files whose tests share nothing, and take minutes together: each is given to whoever is free."""
LONG = (
    "tests/benchmarks/",
    "tests/gateway/connectors/laws/test_conformance.py",
    "tests/docs/test_running.py",
    "tests/end_to_end/",
    "tests/deploy/laws/test_image_builds.py",
    "tests/static_engine/spark/",
    "tests/gateway/laws/",
    "tests/ui/laws/test_browser_hidden.py",
)
"""Where files or tests take most of a minute or more: begun last, all wait for one of them."""

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For JVMs that live for a minute: half the CPU time. A user's lives long and compiles better."""
os.environ.setdefault("JDK_JAVA_OPTIONS", JAVA)

SERVICES = frozenset({"broker", "spark", "end_to_end", "browser", "postgres", "published"})
NAMED_MARK = re.compile(rf"\bmark\.({'|'.join(sorted(SERVICES))})\b")

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

COLLECTIONS = (20_000, 20, 20)
"""Thresholds of the garbage collector while tests run: full collections were 6 % of their time."""
NIGHTLY_SECONDS = 3_600
"""How long a property may take with the examples of `nightly`; others keep their limits."""


class FilesTogether(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each worker whole files: a file's tests share its federation, broker or browser.

    What runs in one Spark session counts as one file. Files are given in the order of collection.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", maxsplit=1)[0]
        if file in ALONE:
            return nodeid
        return "spark" if shares_spark(file) else file


def shares_spark(file: str) -> bool:
    """Whether a file's tests run in the one Spark session of their process."""
    return file.startswith(SPARK) and not file.startswith(OWN_PROCESSES)


def place_in_queue(file: str) -> int:
    """Return when a file is begun: the session that many share first, then what takes long."""
    if shares_spark(file):
        return 0
    place = next((n for n, start in enumerate(LONG) if file.startswith(start)), len(LONG))
    return 1 + place


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage while everything that is made stays: two fifths of collection's time.

    Around all others: with workers, xdist answers for the process that starts them. What is there
    afterwards, a million objects of modules and tests, is never looked through again: full
    collections were a tenth of all CPU time of the tests that follow.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTIONS)
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # DuckDB prints what it believes to be leaked if its module is never freed


@cache
def needs_services(file: Path) -> bool:
    """Look into a file of tests for a mark of those that start services."""
    return NAMED_MARK.search(file.read_text()) is not None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a test with a mark of services that its file does not name: it would be left out.

    Raises:
        UsageError: It is one.
    """
    if any(item.get_closest_marker(mark) for mark in SERVICES) and not needs_services(item.path):
        raise pytest.UsageError(f"{item.nodeid} needs services; name the mark in its file")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without services where only services are asked for.

    Every worker would import seven hundred modules to find the hundred that it runs.
    """
    asked = set(config.option.markexpr.split(" or "))
    if not asked <= SERVICES or not collection_path.name.startswith("test_"):
        return None
    return True if collection_path.is_file() and not needs_services(collection_path) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesTogether | None:
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # by numbers of tests: what takes long would be last
    return FilesTogether(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files instead of comparing"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order what must be last; give properties the time that nightly numbers of examples take."""
    items.sort(
        key=lambda item: (
            place_in_queue(item.nodeid.split("::", maxsplit=1)[0]),
            item.nodeid.startswith(OWN_SESSION),
        )
    )
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
