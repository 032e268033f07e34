"""Who counts as one client, and who does not."""

from ui.connections import ConnectionLimits, Connections


def test_proxies_bring_many_and_others_do_not() -> None:
    limits = ConnectionLimits(total=10, per_address=2, proxies=("10.0.0.0/8", "2001:db8::1"))
    opened = Connections(limits)
    for address in ("10.1.2.3", "2001:db8::/64"):
        assert [opened.enter(address) for _ in range(4)] == [""] * 4
    assert opened.enter("192.0.2.1") == opened.enter("192.0.2.1") == ""
    assert "10 connections are open" in opened.enter("192.0.2.1")
    for _ in range(4):
        opened.leave("10.1.2.3")
    assert "2 connections from 192.0.2.1" in opened.enter("192.0.2.1")
    assert opened.enter("a unix socket") == ""
