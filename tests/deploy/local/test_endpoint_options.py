"""Options are typed as texts, and kept as the type of their field."""

import pytest

from deploy.local.endpoint_options import typed_options
from streamsql.errors import DeploymentError


def test_a_text_stays_one_and_others_are_read_as_json() -> None:
    assert typed_options(
        "gw-1",
        "mqtt",
        {"address": "mqtt://h", "password": "123456", "username": "true", "keepalive": "30"},
    ) == {
        "connector": "mqtt",
        "address": "mqtt://h",
        "password": "123456",
        "username": "true",
        "keepalive": 30,
    }


def test_an_object_is_written_as_json_or_entry_by_entry() -> None:
    whole = {"port": "8094", "tokens": '{"lora": "a-long-text"}'}
    assert typed_options("gw-1", "http_push", whole)["tokens"] == {"lora": "a-long-text"}
    single = {"port": "8094", "tokens.lora": "123456789", "tokens.a.b": "another-one"}
    assert typed_options("gw-1", "http_push", single) == {
        "connector": "http_push",
        "port": 8094,
        "tokens": {"lora": "123456789", "a.b": "another-one"},
    }
    sent = {"url": "http://h", "headers.Authorization": "Bearer x"}
    assert typed_options("console", "webhook", sent)["headers"] == {"Authorization": "Bearer x"}


def test_truth_values_numbers_and_what_every_endpoint_may_have() -> None:
    found = typed_options(
        "gw-1",
        "http",
        {
            "url": "http://h",
            "check_certificate": "false",
            "timeout": "5 s",
            "correct_times": "true",
        },
    )
    assert found["check_certificate"] is False
    assert found["timeout"] == "5 s"
    assert found["correct_times"] is True


def test_a_name_that_is_no_option_is_left_to_who_checks_them() -> None:
    assert typed_options("gw-1", "mqtt", {"x.y": "1"}) == {"connector": "mqtt", "x.y": 1}


@pytest.mark.parametrize("gateway", ["gw-1", "console"])
def test_a_connector_that_there_is_not_is_said(gateway: str) -> None:
    with pytest.raises(DeploymentError, match="'telex'"):
        typed_options(gateway, "telex", {})
