"""What is asked of a console: constants, times of the static engine, a place to set them."""

from typing import Any

import pytest

from deploy.calibration import federation_costs
from deploy.calibration.federation_costs import (
    constants_of,
    federation,
    hops_of,
    set_constants,
    timed_engines,
)
from deploy.calibration.rounds import Measurement
from streamsql.errors import DeploymentError

Object = dict[str, Any]


class FakeConsole:
    """A console with tables; a query over one is timed when it has settled."""

    def __init__(self, *tables: Object) -> None:
        self.tables = list(tables)
        self.asked: list[str] = []
        self.running: list[str] = []
        self.timed = False
        self.settles = True

    def get(self, path: str) -> Any:
        match path.split("/")[2:]:
            case ["tables"]:
                return {"tables": self.tables}
            case ["costs"]:
                origin = "timed by the static engine" if self.timed else "default"
                return [{"name": "local_floor", "place": "", "origin": origin}]
            case ["queries", query]:
                assert query in self.running
                self.timed = self.timed or self.settles
                return {"settled": self.settles}
            case _:
                raise AssertionError(path)

    def post(self, path: str, body: Object, *, seconds: float = 30.0) -> Any:
        assert seconds >= 30.0
        if path == "/api/costs/hops":
            return {"milliseconds": [1.0, 2.0]}
        if path == "/api/costs":
            return [body]
        assert path == "/api/statements"
        assert body["origin"] == "session"  # it ends with its reader, whatever happens
        self.asked.append(body["text"])
        self.running.append(f"q{len(self.asked)}")
        return [{"query": {"id": self.running[-1]}}]

    def delete(self, path: str) -> None:
        self.running.remove(path.rpartition("/")[2])


def table(name: str, rows: int | None, problem: str = "") -> Object:
    return {"name": name, "rows": rows, "problem": problem}


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federation_costs, "_POLL_SECONDS", 0.0)


def test_the_smallest_and_the_largest_table_are_read_and_no_query_stays() -> None:
    found = FakeConsole(table("b", 10), table('od"d', 5_000_000), table("a", 3), table("c", None))
    found.tables.append(table("gone", 9_000_000, "no such file"))
    assert timed_engines(found) == []  # type: ignore[arg-type]
    assert found.asked == ['SELECT COUNT(*) AS n FROM "c"', 'SELECT COUNT(*) AS n FROM "od""d"']
    assert found.running == []


def test_an_engine_that_times_nothing_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(federation_costs, "ENGINE_SECONDS", 0.02)
    silent = FakeConsole(table("a", 3))
    silent.settles = False
    (note,) = timed_engines(silent)  # type: ignore[arg-type]
    assert note.startswith("the static engine has not timed anything")
    assert silent.running == []
    silent.timed = True  # a week ago
    (note,) = timed_engines(silent)  # type: ignore[arg-type]
    assert note.startswith("times of the static engine are those of earlier queries")


def test_why_the_static_engine_is_not_timed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    away: Any = FakeConsole()
    assert timed_engines(away) == [
        "the static engine is not timed: it has no table that can be read"
    ]
    monkeypatch.setattr(away, "get", _refusing(away.get))
    assert timed_engines(away) == ["the static engine is not timed: the static engine is away"]
    forbidden: Any = FakeConsole(table("a", 3))
    monkeypatch.setattr(forbidden, "post", _forbidden)
    assert timed_engines(forbidden) == ["the static engine is not timed: table a: not allowed"]


def _forbidden(*_: Any, **__: Any) -> Any:
    raise DeploymentError("not allowed")


def _refusing(get: Any) -> Any:
    def asked(path: str) -> Any:
        if path == "/api/tables":
            raise DeploymentError("the static engine is away")
        return get(path)

    return asked


def test_constants_go_out_with_their_spread_and_place() -> None:
    console: Any = FakeConsole()
    measured = {"join_microseconds": Measurement("join_microseconds", 5.0, 4.0, 6.0, 9)}
    assert set_constants(console, measured, "base") == [
        {
            "values": {"join_microseconds": {"value": 5.0, "low": 4.0, "high": 6.0, "rounds": 9}},
            "place": "base",
        }
    ]
    assert hops_of(console) == [1.0, 2.0]
    assert constants_of(console) == [{"name": "local_floor", "place": "", "origin": "default"}]


def test_a_console_that_is_named_has_to_answer_and_none_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PANDO_CONSOLE", raising=False)
    monkeypatch.setattr("deploy.calibration.federation_costs.console_address", lambda given: given)
    monkeypatch.setattr("deploy.calibration.federation_costs.DEFAULT_ADDRESS", "http://127.0.0.1:1")
    monkeypatch.setattr("ui.cli.client.DEFAULT_ADDRESS", "http://127.0.0.1:1")
    with federation(None) as nobody:
        assert nobody is None
    with (
        pytest.raises(DeploymentError, match="no console answers at http"),
        federation("http://127.0.0.1:9"),
    ):
        pass
