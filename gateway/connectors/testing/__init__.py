"""The conformance kit: what every connector has to do, tried with a real peer.

A test gives a `Peer` (a device, broker or server that it runs) and the connector's class, and runs
each of `CHECKS`; nothing here needs a test framework.

    @pytest.mark.parametrize("check", CHECKS, ids=name_of)
    def test_conformance(check: Check) -> None:
        asyncio.run(run_check(check, MyConnector, MyPeer()))
"""
