"""Questions about rows over REST."""

from typing import Any

import pytest

LINKS = [("a", "b", 1.0, 0.9, 0), ("b", "c", 1.0, 0.9, 0), ("a", "c", 3.0, 0.3, 0)]


@pytest.fixture
def query(console: Any, client: Any) -> str:
    """A running query over three links."""
    console.do(lambda: console.coordinator.base.update(link=LINKS))
    text = "SELECT src, dst FROM reachable"
    result = client.post("/api/statements", json={"text": text, "name": "reach"}).json()
    return str(result[0]["query"]["id"])


def test_why_takes_a_row_as_lists_show_it(client: Any, query: str) -> None:
    answer = client.post(f"/api/queries/{query}/why", json={"row": {"dst": "c", "src": "a"}})
    assert answer.status_code == 200
    found = answer.json()
    assert found["kind"] == "text"
    assert found["data"]["row"] == {"src": "a", "dst": "c"}
    supports = [[b["row"]["dst"] for b in support] for support in found["data"]["supports"]]
    assert supports == [["c"], ["b", "c"]]
    assert found["data"]["complete"]
    listed = client.post("/api/queries/reach/why", json={"row": ["a", "c"], "limit": 1}).json()
    assert listed["data"]["supports"] == found["data"]["supports"][:1]
    assert not listed["data"]["complete"]


def test_confidence_of_one_row_and_of_all(client: Any, console: Any, query: str) -> None:
    halves = [(src, dst, 1.0, 0.5, 0) for src, dst, *_ in LINKS]
    console.do(lambda: console.coordinator.base.update(link=halves))
    body = {"row": ["a", "c"], "confidence": "link.pdr"}
    one = client.post(f"/api/queries/{query}/why", json=body).json()["data"]["confidence"]
    assert one == {"probability": 0.625, "exact": True, "reason": "", "columns": "link.pdr"}
    rows = client.post(f"/api/queries/{query}/confidence", json={"column": "link.pdr"}).json()
    chances = [row["confidence"]["probability"] for row in rows["data"]["rows"]]
    assert chances == [0.5, 0.625, 0.5]


def test_what_if_looks_at_one_query_or_at_all(client: Any, query: str) -> None:
    client.post("/api/statements", json={"text": "SELECT rid FROM RoomSensor", "name": "rooms"})
    delete = [{"source": "Link", "values": ["a", "b"]}, {"source": "link", "values": ["b"]}]
    everywhere = client.post("/api/what-if", json={"delete": delete}).json()["data"]
    assert [q["query"] for q in everywhere["queries"]] == ["reach", "map-links"]
    assert len(everywhere["deleted"]) == 2
    (here,) = client.post("/api/what-if", json={"delete": delete, "query": query}).json()["data"][
        "queries"
    ]
    assert here["gone"] == [{"src": "a", "dst": "b"}, {"src": "b", "dst": "c"}]
    assert (here["gone_count"], here["come_count"], here["rows"]) == (2, 0, 3)


@pytest.mark.usefixtures("query")
def test_what_if_a_gateway_or_a_node_dies(client: Any) -> None:
    node = client.post("/api/what-if", json={"nodes": ["b"]}).json()["data"]
    assert [row["row"]["dst"] for row in node["deleted"]] == ["b", "c"]
    refused = client.post("/api/what-if", json={"gateways": ["gw-17"]})
    assert refused.status_code == 400
    assert "no gateway 'gw-17'" in refused.text


@pytest.mark.usefixtures("query")
@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/api/queries/nothing/why", {"row": ["a"]}, 404, "there is no query"),
        ("/api/queries/reach/why", {"row": ["a"]}, 400, "1 values for 2 columns"),
        (
            "/api/queries/reach/why",
            {"row": {"src": "a"}},
            400,
            "the row must name each column of the query once",
        ),
        ("/api/queries/reach/why", {"row": ["a", "c"], "limit": 0}, 422, "limit"),
        (
            "/api/queries/reach/why",
            {"row": ["a", "c"], "confidence": "x.y"},
            400,
            "is not a column of a source that the query reads",
        ),
        ("/api/what-if", {"delete": []}, 400, "no deletion is given"),
        ("/api/what-if", {"delete": [{"source": "x", "values": ["a"]}]}, 400, "no source or table"),
        (
            "/api/what-if",
            {"delete": [{"source": "link", "values": ["z"]}]},
            400,
            "no base row has these values, so nothing would change",
        ),
        ("/api/statements", {"text": "EXPLAIN WHY reachable ROW ('a')"}, 400, "1 values"),
    ],
)
def test_wrong_questions_are_refused(
    client: Any, path: str, body: Any, status: int, said: str
) -> None:
    refused = client.post(path, json=body)
    assert refused.status_code == status, refused.text
    assert said in refused.json()["error"]["message"]
