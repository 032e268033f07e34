"""Problems of a connection are told when it is over, also by the next process."""

from pathlib import Path

from gateway.session.connection_problems import ConnectionProblems
from host.mqtt.unreachable import Failure
from streamsql.wire.site_messages import ConnectionProblem

SECOND = 1_000_000
REFUSED = Failure("it refuses the connection", "correct the password")
NOBODY = Failure("nothing listens there")


class Setting:
    """A clock that is set by hand, and processes one after the other on one file."""

    def __init__(self, folder: Path) -> None:
        self.now = 100 * SECOND
        self.file = folder / "connection_problem.json"

    def process(self) -> ConnectionProblems:
        return ConnectionProblems(self.file, lambda: self.now)


def test_a_problem_is_told_when_it_is_over(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    problems = setting.process()
    assert problems.last is None
    problems.failed(NOBODY)
    setting.now += 5 * SECOND
    problems.failed(REFUSED)
    assert problems.last is None
    setting.now += 5 * SECOND
    problems.over()
    told = ConnectionProblem(REFUSED.reason, 100 * SECOND, 110 * SECOND)
    assert problems.last == told
    setting.now += 50 * SECOND
    problems.over()
    assert problems.last == told


def test_it_is_told_by_the_process_that_was_started_with_the_right_settings(
    tmp_path: Path,
) -> None:
    setting = Setting(tmp_path)
    setting.process().failed(REFUSED)
    setting.now += 60 * SECOND
    after = setting.process()
    after.over()
    assert after.last == ConnectionProblem(REFUSED.reason, 100 * SECOND, 160 * SECOND)
    assert setting.process().last == after.last


def test_a_short_interruption_is_no_problem(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    problems = setting.process()
    problems.failed(NOBODY)
    setting.now += SECOND // 2
    problems.over()
    assert problems.last is None
    assert not setting.file.exists()


def test_the_same_reason_is_written_once(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    problems = setting.process()
    problems.failed(NOBODY)
    written = setting.file.stat().st_mtime_ns, setting.file.stat().st_ino
    for _ in range(100):
        problems.failed(NOBODY)
    assert (setting.file.stat().st_mtime_ns, setting.file.stat().st_ino) == written


def test_a_damaged_file_keeps_nobody_from_starting(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    setting.file.write_text("{")
    assert setting.process().last is None
