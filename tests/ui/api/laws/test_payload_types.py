"""The types that the pages' scripts have of answers, compared with real answers by tsc.

A property that an answer has and its type lacks is an error, and so is one that it lacks. `make
javascript` installs tsc.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.ui.api.resources.test_network_routes import NETWORK
from tests.ui.api.resources.test_source_trial_routes import KITCHEN

ROOT = Path(__file__).resolve().parents[4]
TSC = ROOT / "node_modules/.bin/tsc"
PAYLOADS = ROOT / "ui/static/js/payloads.d.ts"
SCRIPT = """
CREATE DISPLAY lobby WITH (floor = 0, x = 12, y = 12, title = 'Free machines', rows = 3);
CREATE ALARM hot AS SELECT rid, celsius FROM Temperature WHERE celsius > 40 SEVERITY 'critical';
"""
SEATS = "SELECT mid, weightLevel FROM SeatSensor"

pytestmark = pytest.mark.skipif(not TSC.exists(), reason="without tsc: make javascript")


def errors(folder: Path, answers: list[tuple[str, Any]]) -> list[str]:
    """Return what tsc finds wrong in values that are said to be of types."""
    lines = ['import type * as payloads from "./payloads";']
    for number, (name, value) in enumerate(answers):
        told = json.dumps(value, ensure_ascii=False)
        lines.append(f"export const v{number}: {name} = {told};")
    (folder / "payloads.d.ts").write_text(PAYLOADS.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "answers.ts").write_text("\n".join(lines), encoding="utf-8")
    command = [str(TSC), "--strict", "--noEmit", "--target", "es2022", "answers.ts"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "error TS" in line]
    assert bool(found) == bool(done.returncode), done.stdout + done.stderr
    return found


def test_answers_are_of_the_types_that_scripts_have(
    client: httpx.Client, console: Any, tmp_path: Path
) -> None:
    def run(text: str, **more: str) -> Any:
        answer = client.post("/api/statements", json={"text": text, **more})
        assert answer.is_success, answer.text
        return answer.json()

    made = run(SCRIPT)
    started = run(SEATS, name="seats")
    (query,) = (result["query"] for result in started)
    console.do(lambda: console.coordinator.raise_alarm("hot", ("L101", 41.5)))
    answers = [("payloads.Result[]", made), ("payloads.Result[]", started)]
    gets = [
        "/api/queries",
        "/api/sites",
        "/api/definitions",
        "/api/sources",
        "/api/alarms/count",
        f"/api/queries/{query['id']}",
        "/api/network",
    ]
    console.coordinator.nodes = NETWORK
    for path in gets:
        answer = client.get(path)
        assert answer.is_success, answer.text
        assert answer.json(), path
        answers.append((f'payloads.GetAnswer<"{path}">', answer.json()))
    answers.append(("payloads.Alarm[]", client.get("/api/alarms").json()))
    answers.append(("payloads.Display", client.get("/api/displays/lobby").json()))
    wrong = client.post("/api/validate", json={"text": "SELECT nothing FROM nowhere"}).json()
    assert wrong["diagnoses"]
    answers.append(('payloads.PostAnswer<"/api/validate">', wrong))
    refused = client.post("/api/statements", json={"text": "SELECT"}).json()
    answers.append(("{ error: payloads.Problem }", refused))
    place = client.post("/api/complete", json={"text": "SELECT ", "offset": 7}).json()
    assert place
    answers.append(('payloads.PostAnswer<"/api/complete">', place))
    answers += trial_answers(client, console)
    assert errors(tmp_path, answers) == []


def trial_answers(client: httpx.Client, console: Any) -> list[tuple[str, Any]]:
    """Return answers about a source that is tried."""
    begun = client.post("/api/sources/trials", json={"endpoint": "home", "options": {"topic": "#"}})
    console.do(lambda: console.coordinator.report(KITCHEN, notes=("subscribed",), done=True))
    path = f"/api/sources/trials/{begun.json()['id']}"
    proposals = client.post(f"{path}/proposals", json={}).json()
    body = {"trial": begun.json()["id"], "text": proposals[0]["text"]}
    mapped = client.post("/api/sources/try", json=body).json()
    assert mapped["samples"][0]["rows"]
    return [
        ('payloads.PostAnswer<"/api/sources/trials">', begun.json()),
        ('payloads.GetAnswer<"/api/sources/trials/x">', client.get(path).json()),
        ('payloads.PostAnswer<"/api/sources/trials/x/proposals">', proposals),
        ('payloads.PostAnswer<"/api/sources/try">', mapped),
    ]


def test_what_a_type_lacks_or_an_answer_is_found(tmp_path: Path) -> None:
    column = {"name": "mid", "type": "TEXT"}
    more, fewer = {**column, "width": 7}, {"name": "mid"}
    found = errors(tmp_path, [("payloads.Column", value) for value in (column, more, fewer)])
    assert [line.split("(")[1].split(",")[0] for line in found] == ["3", "4"]
