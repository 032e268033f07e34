"""A calendar's text from files and addresses, bounded in size and time."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.connectors.calendar.fetching import fetch
from streamsql.errors import DeploymentError
from tests.gateway.connectors.calendar.answers import Answers, serving
from tests.gateway.connectors.calendar.calendars import calendar, event


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def test_a_file_and_an_address_give_the_same(tmp_path: Path) -> None:
    content = calendar(event(":20260302T090000Z", ":20260302T100000Z"))
    (tmp_path / "c.ics").write_bytes(content)
    assert fetch(str(tmp_path / "c.ics")) == content
    with serving(lambda answer: answer.say(content)) as address:
        assert fetch(address) == content


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda a: a.say(b"gone", 404), "404"),
        (lambda a: a.say(b"x" * 1_001), "larger than 1000 bytes"),
        (lambda a: a.say(b"short", length=900), "895 bytes are missing"),
        (lambda a: a.wfile.write(b"nonsense\r\n\r\n"), "cannot fetch"),
        (lambda a: a.connection.close(), "cannot fetch"),
    ],
)
def test_a_bad_answer_is_explained(answer: Callable[[Answers], None], complaint: str) -> None:
    with serving(answer) as address, pytest.raises(DeploymentError, match=complaint):
        fetch(address, limit=1_000, seconds=5)


def test_a_server_that_drips_is_left(tmp_path: Path) -> None:
    stop = threading.Event()

    def drip(answer: Answers) -> None:
        answer.say(b"", length=10_000)
        while not stop.wait(0.05):
            answer.wfile.write(b"x")
            answer.wfile.flush()

    with serving(drip) as address:
        with pytest.raises(DeploymentError, match=r"took longer than 0\.5 s"):
            fetch(address, seconds=0.5)  # all it would say takes 500 s
        stop.set()
    assert tmp_path.exists()


@pytest.mark.parametrize(
    ("location", "complaint"),
    [
        ("/no/such/file.ics", "cannot read calendar"),
        ("bad\0name", "cannot read calendar"),
        ("http://127.0.0.1:1/c.ics", "cannot fetch calendar"),
        ("http://[::1", "."),
        ("http://", "cannot fetch calendar"),
    ],
)
def test_a_location_that_is_none_is_explained(location: str, complaint: str) -> None:
    with pytest.raises(DeploymentError, match=complaint):
        fetch(location, seconds=2)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.ics").write_bytes(bytes(2_000))
    with pytest.raises(DeploymentError, match="larger than 1000 bytes"):
        fetch(str(tmp_path / "c.ics"), limit=1_000)
