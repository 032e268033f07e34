"""Faults of options are said so that one knows what to write; values are not shown."""

import enum
from typing import Any, Literal

import msgspec
import pytest

from host.files.option_problems import option_problem


class Login(enum.StrEnum):
    """Made up."""

    BASIC = "basic"
    DIGEST = "digest"


class Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Made up."""

    address: str
    port: int = 1
    tokens: dict[str, str] = {}
    login: Login = Login.BASIC
    version: Literal["4", "5"] | None = None

    def __post_init__(self) -> None:
        if self.port < 0:
            raise ValueError("port: 0 or more")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "endpoint home needs `address`"),
        ({"adress": "s3cret"}, "endpoint home has no option `adress`"),
        ({"address": "a", "port": "s3cret"}, "`port` has to be a whole number, not a text"),
        ({"address": "a", "port": -1}, "endpoint home: port: 0 or more"),
        ({"address": 5}, "endpoint home: `address` has to be a text, not a whole number"),
        ({"address": "a", "tokens": ["s3cret"]}, "`tokens` has to be a JSON object, not a list"),
        ({"address": "a", "tokens": {"x": 5}}, "has to be a text, not a whole number"),
        ({"address": "a", "login": "s3cret x"}, "`login` is none of its choices: basic, digest"),
        ({"address": "a", "version": "s3cret"}, "`version` is none of its choices: 4, 5"),
    ],
)
def test_a_fault_is_said_in_plain_words(given: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(given, Device)
    found = option_problem("endpoint home", caught.value, Device, "write NAME=…")
    assert message in found.message
    assert found.message.startswith("endpoint home")
    assert "s3cret" not in str(found)
    assert "known options: address, port, tokens, login, version" in str(found.hint)


def test_the_hint_says_how_to_write_what_is_missing_or_misspelt() -> None:
    hints = []
    for given in ({}, {"adress": "x"}):
        with pytest.raises(msgspec.ValidationError) as caught:
            msgspec.convert(given, Device)
        hints.append(str(option_problem("x", caught.value, Device, "write NAME=…").hint))
    assert hints[0].startswith("write address=…; ")
    assert hints[1].startswith("did you mean address?; ")
