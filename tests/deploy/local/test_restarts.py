"""The pauses before services that died are started again."""

import pytest

from deploy.local.restarts import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    MOST_VITAL_DEATHS,
    OPERATORS_FAULT,
    SETTLED_SECONDS,
    Restarts,
)
from deploy.local.service_processes import Death, Service, ServiceSpec


def death(name: str = "gw-1", status: int = -9, ran: float = 1.0, *, vital: bool = False) -> Death:
    """Return a death of a service that has run for so many seconds."""
    return Death(Service(ServiceSpec(name, ("true",), vital), lambda *_: None), status, ran)


def test_each_death_in_a_row_doubles_the_pause_up_to_the_longest() -> None:
    restarts = Restarts()
    pauses = [restarts.pause_after(death()) for _ in range(40)]
    assert pauses[:4] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE]
    assert set(pauses[10:]) == {LONGEST_PAUSE}


def test_a_service_that_has_run_for_long_begins_again_with_the_first_pause() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.pause_after(death())
    assert restarts.pause_after(death(ran=SETTLED_SECONDS)) == FIRST_PAUSE
    assert restarts.pause_after(death("gw-2")) == FIRST_PAUSE


def test_a_vital_service_is_given_up_after_some_deaths_in_a_row() -> None:
    restarts = Restarts()
    pauses = [restarts.pause_after(death(vital=True)) for _ in range(MOST_VITAL_DEATHS + 1)]
    assert None not in pauses[:-1]
    assert pauses[-1] is None


@pytest.mark.parametrize("vital", [False, True])
def test_what_the_operator_must_correct_is_not_tried_again(vital: bool) -> None:
    restarts = Restarts()
    assert restarts.pause_after(death(status=OPERATORS_FAULT, vital=vital)) is None
    assert restarts.due() == ()


def test_a_service_is_due_once_when_its_pause_is_over() -> None:
    now = [100.0]
    restarts = Restarts(lambda: now[0])
    restarts.pause_after(death())
    assert restarts.due() == ()
    now[0] += FIRST_PAUSE
    assert restarts.due() == ("gw-1",)
    assert restarts.due() == ()


def test_what_somebody_stopped_meanwhile_is_not_due() -> None:
    now = [100.0]
    restarts = Restarts(lambda: now[0])
    restarts.pause_after(death())
    restarts.forget("gw-1")
    now[0] += LONGEST_PAUSE
    assert restarts.due() == ()
