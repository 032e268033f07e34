"""Wrong options of the connector http are refused in words, before anything is asked."""

import pytest

from gateway.connectors.http.http_options import HttpEndpoint, HttpSource, page_urls
from gateway.connectors.options import convert_options
from streamsql.errors import DeploymentError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "10.0.0.7"}, "url: write http://10.0.0.7"),
        ({"url": "file:///etc/passwd"}, "url: write"),
        ({"url": "http://me:pw@h"}, "user and password as separate options"),
        ({"url": "http://h/?x=1"}, "remove ? and #"),
        ({"url": "http://h/{host}"}, "{host} stands for the host only"),
        ({"url": "http://{host}.{zone}"}, "{host} is the only name in braces"),
        ({"url": "http://h", "user": "a", "token": "b"}, "not both"),
        ({"url": "http://h", "timeout": 0}, "timeout: between 0.1 s and 5 min"),
        ({"url": "http://h", "timeuot": 1}, "has no option `timeuot`"),
        ({}, "needs `url`"),
    ],
)
def test_a_wrong_endpoint_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(DeploymentError) as refusal:
        convert_options(given, HttpEndpoint, "endpoint here")
    assert said in refusal.value.message
    assert "pw" not in refusal.value.message


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "room"}, "path: begin with /"),
        ({"path": "/a b"}, "path: begin with /"),
        ({"path": "/a\r\nHost: x"}, "path: begin with /"),
        ({"path": "/" * 2_001}, "path: begin with /"),
        ({"interval": "0.05 s"}, "interval: at least 0.1 s"),
        ({"interval": "soon"}, "interval"),
        ({"hosts": "a, b/c"}, "'b/c' is no host"),
        ({"hosts": "user@h"}, "is no host"),
        ({"hosts": "a, a"}, "one is named twice"),
        ({"hosts": ",".join(f"h{n}" for n in range(1_001))}, "hosts: at most 1000"),
    ],
)
def test_a_wrong_source_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(DeploymentError) as refusal:
        convert_options(given, HttpSource, "source room", texts=True)
    assert said in refusal.value.message


def test_hosts_may_be_addresses_of_both_kinds_with_ports() -> None:
    source = HttpSource("/x", hosts="10.0.0.7, pdu-2.lab:81, [fd00::7]:8080")
    assert page_urls(HttpEndpoint("https://{host}/"), source) == (
        "https://10.0.0.7/x",
        "https://pdu-2.lab:81/x",
        "https://[fd00::7]:8080/x",
    )


def test_hosts_are_for_endpoints_that_take_some() -> None:
    with pytest.raises(ValueError, match="the endpoint's url is of one host"):
        page_urls(HttpEndpoint("http://h"), HttpSource(hosts="a"))
