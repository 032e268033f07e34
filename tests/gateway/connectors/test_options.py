"""Options of connectors are converted to structs; errors name what is wrong, never a value."""

import enum

import msgspec
import pytest

from gateway.connectors.options import Seconds, convert_options
from streamsql.errors import DeploymentError


class Scheme(enum.StrEnum):
    """Made up."""

    PLAIN = "plain"


class Poll(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Made up."""

    url: str
    unit: int = 1
    interval: Seconds = Seconds(10)


def test_texts_of_a_with_clause_become_what_the_struct_says() -> None:
    given = {"url": "http://meter", "unit": "7", "interval": "1 min"}
    assert convert_options(given, Poll, "source s", texts=True) == Poll(
        "http://meter", 7, Seconds(60)
    )


def test_settings_are_not_guessed_from_texts() -> None:
    with pytest.raises(
        DeploymentError, match=r"endpoint e: `unit` has to be a whole number, not a text"
    ):
        convert_options({"url": "u", "unit": "7"}, Poll, "endpoint e")


@pytest.mark.parametrize("interval", ["soon", -1, True, float("nan"), 1e300, [5]])
def test_what_is_no_duration_is_refused(interval: object) -> None:
    with pytest.raises(DeploymentError, match=r"`interval`.*duration"):
        convert_options({"url": "u", "interval": interval}, Poll, "endpoint e")


def test_an_unknown_option_is_named_with_those_that_are_known() -> None:
    with pytest.raises(DeploymentError, match="source s has no option `topic`") as caught:
        convert_options({"url": "u", "topic": "t"}, Poll, "source s", texts=True)
    assert caught.value.hint == "known options: url, unit, interval"


def test_no_error_shows_a_value() -> None:
    class Secure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        scheme: Scheme

    with pytest.raises(DeploymentError) as caught:
        convert_options({"scheme": "hunter2 'x'"}, Secure, "endpoint e")
    assert "hunter2" not in str(caught.value)
    assert "`scheme` is none of its choices: plain" in str(caught.value)
