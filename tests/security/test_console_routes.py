"""Every route of a real console, asked by everybody: who is answered, and what no answer holds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.console_attempts import application, asked_by_all, routes_of
from tests.security.console_requests import Requests, closed_in_time, held_open
from tests.security.console_rights import LEAST
from tests.security.desk import NO_ONE, Desk, desk

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

SAMPLE = 2_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("desk")) as made:
        yield made


def test_every_route_is_stated(tmp_path: Path) -> None:
    """Who adds a route says in console_rights.py who may use it."""
    assert set(routes_of(application(tmp_path))) == set(LEAST)


def test_nobody_is_answered_more_or_less_than_is_stated(running: Desk, tmp_path: Path) -> None:
    asked = asked_by_all(running, routes_of(application(tmp_path)))
    assert asked.wrong == []
    assert asked.refused > 1_000
    assert asked.answered > 300
    assert len(running.askers) == len(NO_ONE) + 5
    assert running.answers()
    assert running.leaks(running.log()) == []


def test_no_request_makes_it_fail_or_tell_a_secret(running: Desk, tmp_path: Path) -> None:
    """A sample; `python -m tests.security --requests 100000` is the long run."""
    with held_open(running, 30) as held:
        run = Requests(running, routes_of(application(tmp_path)), seed=1).send(SAMPLE)
        assert run.wrong == []
        assert closed_in_time(held, 30)
    assert run.requests == SAMPLE
    assert running.leaks(running.log()) == []
