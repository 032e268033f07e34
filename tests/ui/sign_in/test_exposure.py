"""A console that others reach does not start without accounts and TLS."""

from pathlib import Path

import pytest

from streamsql.errors import DeploymentError
from ui.sign_in.exposure import check_exposure, is_loopback, proxies

CONFIG = Path("/etc/pando/console settings.json")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "[::1]", "localhost"])
def test_on_loopback_nothing_is_needed(host: str) -> None:
    assert is_loopback(host)
    check_exposure(host, (), has_accounts=False, has_tls=False, config=None)


@pytest.mark.parametrize("host", ["::", "192.0.2.1", "host.example", ""])
@pytest.mark.parametrize(
    ("trusted", "accounts", "tls", "missing"),
    [
        ((), False, False, "accounts and TLS"),
        ((), True, False, "TLS"),
        ((), False, True, "accounts"),
        (("10.0.0.1",), False, False, "accounts"),
        ((), True, True, ""),
        (("10.0.0.1",), True, False, ""),
    ],
)
def test_elsewhere_accounts_and_tls_or_a_proxy_are(
    host: str, trusted: tuple[str, ...], accounts: bool, tls: bool, missing: str
) -> None:
    if not missing:
        check_exposure(host, trusted, has_accounts=accounts, has_tls=tls, config=CONFIG)
        return
    with pytest.raises(DeploymentError, match=f"without {missing}:") as refused:
        check_exposure(host, trusted, has_accounts=accounts, has_tls=tls, config=CONFIG)
    wants_account = "pando user add NAME --role administrator --config '/etc/pando/console"
    assert (wants_account in refused.value.hint) == ("accounts" in missing)
    assert ("pando ca issue" in refused.value.hint) == ("TLS" in missing)


def test_a_proxy_on_this_machine_brings_others_too() -> None:
    with pytest.raises(DeploymentError, match="without accounts: a reverse proxy"):
        check_exposure("127.0.0.1", ("127.0.0.1",), has_accounts=False, has_tls=False, config=None)


def test_proxies_are_addresses_and_networks() -> None:
    assert proxies(" 127.0.0.1, 10.0.0.0/8 ,::1,") == ("127.0.0.1", "10.0.0.0/8", "::1")
    for wrong in ("*", "proxy.example", "0.0.0.0/0", "::/0", "10.0.0.1/99"):
        with pytest.raises(DeploymentError, match="trusted_proxy"):
            proxies(wrong)
