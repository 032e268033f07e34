"""What EXPLAIN says of recursions in a local session."""

import contextlib

from deploy.session import LocalSession, Result


def answer(session: LocalSession, text: str) -> Result:
    return session.run(text)[-1]


def test_explain_tells_what_a_pushed_minimum_leaves_out() -> None:
    with contextlib.closing(LocalSession("stream")) as session:
        session.run("CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst))")
        for kind in ("LOGICAL", "FEDERATED"):
            found = answer(
                session, f"EXPLAIN (TYPE {kind}) SELECT src, dst, cost FROM cheapest_path"
            )
            assert any("skips rows without cost" in text for text in found.warnings)
            found = answer(
                session, f"EXPLAIN (TYPE {kind}) SELECT src, dst, hops FROM shortest_path"
            )
            assert not any("left out" in text for text in found.warnings)
