"""The types that the pages of people have of answers, compared with real answers by tsc."""

from pathlib import Path

from tests.ui.api.laws.test_payload_types import errors, pytestmark
from tests.ui.sign_in.conftest import Ask

__all__ = ["pytestmark"]


def test_answers_about_people_are_of_the_types_that_scripts_have(ask: Ask, tmp_path: Path) -> None:
    root, nobody = ask("administrator"), ask("")
    wanted = {"account": "viewery", "label": "wall", "sources": ["a"], "days": 1}
    assert root.post("/api/tokens", json=wanted).is_success
    assert root.post("/api/me/tokens", json={"label": "mine"}).is_success
    answers = [
        ("payloads.Account[]", root.get("/api/accounts").json()),
        ("payloads.ApiToken[]", root.get("/api/tokens").json()),
        ("payloads.Me", root.get("/api/me").json()),
        ("payloads.Me", nobody.get("/api/me").json()),
    ]
    assert errors(tmp_path, answers) == []
    wrong = [("payloads.Account[]", [{**answers[0][1][0], "argon2": "x"}])]
    assert errors(tmp_path, wrong) != []
