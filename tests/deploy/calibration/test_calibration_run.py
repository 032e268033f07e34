"""`pando calibrate`: what is printed, written and set."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from deploy.calibration import calibration_run
from deploy.calibration.machine_constants import Calibration
from deploy.calibration.rounds import Measurement
from deploy.cli.main import app
from federated_optimizer.statistics.calibrated_constants import CONSTANTS
from streamsql.errors import DeploymentError

Object = dict[str, Any]
MEASURED = {
    "join_microseconds": Measurement("join_microseconds", 5.6789, 4.0, 9.0, 20),
    "local_floor": Measurement("local_floor", 0.000242, 0.0002, 0.0003, 5),
}


class FakeConsole:
    """A console with one calibrated constant and one that the static engine has timed."""

    address = "http://127.0.0.1:1"

    def __init__(self) -> None:
        self.sets: list[Object] = []
        self.may = True

    def get(self, path: str) -> list[Object]:
        assert path == "/api/costs"
        join = {"name": "join_microseconds", "place": "", "value": 3.0, "origin": "calibrated"}
        floor = {"name": "local_floor", "place": "", "value": 0.01, "low": 0.01, "high": 0.01}
        return [join, {**floor, "origin": "timed by the static engine"}]

    def post(self, path: str, body: Object, *, seconds: float = 30.0) -> Any:
        assert seconds
        if not self.may:
            raise DeploymentError("a viewer may not calibrate", code="not_allowed")
        if path == "/api/costs/hops":
            return {"milliseconds": [1.0, 2.0, 3.0]}
        self.sets.append(body)
        return self.get("/api/costs")

    def delete(self, path: str) -> Object:
        assert path == "/api/costs"
        return {"forgotten": 7}


class Asked:
    """What the measurement was asked for."""

    def __init__(self) -> None:
        self.options: Object | None = None
        self.notes: list[str] = []

    def measure(self, report: Any, **options: Any) -> Calibration:
        report("operators", 0.5)
        self.options = options
        return Calibration(dict(MEASURED), list(self.notes))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked()
    monkeypatch.setattr(calibration_run, "measure", found.measure)
    monkeypatch.setattr(calibration_run, "timed_engines", lambda _client: [])
    return found


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> FakeConsole:
    assert asked.options is None
    found = FakeConsole()
    _answering(monkeypatch, found)
    return found


def _answering(monkeypatch: pytest.MonkeyPatch, console: FakeConsole | None) -> None:
    @contextlib.contextmanager
    def federation(_address: str | None) -> Iterator[FakeConsole | None]:
        yield console

    monkeypatch.setattr(calibration_run, "federation", federation)


def pando(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["calibrate", *arguments])


def test_the_table_has_before_measured_and_spread_and_the_federation_is_told(
    console: FakeConsole, asked: Asked
) -> None:
    done = pando()
    assert done.exit_code == 0, done.output
    cells = [[c.strip() for c in line.split("│")[1:-1]] for line in done.stdout.splitlines()]
    assert ["a changed row in a join", "µs", "3", "5.68", "4 to 9"] in cells
    timed = ["the smallest local evaluation", "s", "0.01", "0.01", "0.01 to 0.01"]
    assert timed in cells
    assert f"{timed[0]}: timed by the static engine, which goes before a calibration" in done.stdout
    assert "The federation at http://127.0.0.1:1 plans with these constants" in done.stdout
    (body,) = console.sets
    assert body["place"] == ""
    assert set(body["values"]) == set(MEASURED)
    assert asked.options is not None
    assert asked.options["hops"]() == [1.0, 2.0, 3.0]
    assert asked.options["quick"] is asked.options["operators_only"] is False


def test_json_is_the_same_on_standard_output_and_in_a_file(
    console: FakeConsole, asked: Asked, tmp_path: Path
) -> None:
    asked.notes = ["a message over a broker: not measured: no room"]
    file = tmp_path / "costs.json"
    done = pando("--json", "--quick", "--out", str(file))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found == json.loads(file.read_text(encoding="utf-8"))
    assert (found["console"], found["saved"]) == (console.address, True)
    assert found["notes"] == asked.notes
    join = next(each for each in found["constants"] if each["name"] == "join_microseconds")
    assert (join["before"], join["value"], join["rounds"]) == (3.0, 5.6789, 20)
    assert asked.options is not None
    assert asked.options["quick"] is True


@pytest.mark.usefixtures("asked")
def test_without_a_federation_the_result_is_shown_beside_the_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _answering(monkeypatch, None)
    done = pando("--json")
    found = json.loads(done.stdout)
    assert (found["console"], found["saved"]) == (None, False)
    join = found["constants"][0]
    assert join["before"] == CONSTANTS["join_microseconds"].value
    told = pando()
    assert "No federation runs here, so nothing was set." in told.stdout
    assert "timed by" not in told.stdout
    forgetting = pando("--forget")
    assert forgetting.exit_code == 2
    assert "no federation runs here" in forgetting.output


def test_gateways_alone_are_set_and_nothing_with_no_save(
    console: FakeConsole, asked: Asked
) -> None:
    assert pando("--for", "gateways").exit_code == 0
    assert console.sets[0]["place"] == "gateways"
    assert asked.options is not None
    assert asked.options["operators_only"] is True
    assert pando("--no-save").exit_code == 0
    assert len(console.sets) == 1
    assert asked.options["hops"] is None
    forgotten = pando("--forget", "--json")
    assert json.loads(forgotten.stdout) == {"console": console.address, "forgotten": 7}


def test_who_may_not_set_constants_is_told_before_anything_is_measured(
    console: FakeConsole, asked: Asked
) -> None:
    console.may = False
    done = pando()
    assert done.exit_code == 2
    assert "a viewer may not calibrate" in done.output
    assert asked.options is None


def test_wrong_options_are_told_in_words(
    console: FakeConsole, asked: Asked, tmp_path: Path
) -> None:
    wrong = pando("--for", "cellar")
    assert wrong.exit_code == 2
    assert "--for 'cellar'?\nhint: use all, gateways, base" in wrong.output
    assert asked.options is None
    nowhere = pando("--no-save", "--out", str(tmp_path / "no" / "costs.json"))
    assert nowhere.exit_code == 2
    assert "cannot write" in nowhere.output
    assert asked.options is None, "before half a minute has passed"
    assert console.sets == []
