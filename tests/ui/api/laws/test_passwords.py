"""A database's password is stored and used, and never shown."""

import logging
from typing import Any

import httpx
import pytest

from host.service_log import _Formatter
from streamsql.redaction import redacted, redacted_address

PASSWORDS = ["s3cret-x", "12345", "a@b:c-s3cret", "it''s-s3cret", "s3 cret words", "s3cret/#?"]


def create(password: str, more: str = "") -> str:
    url = f"postgresql://reader:{password}@db.example:5432/base{more}"
    return (
        f"CREATE TABLE staff (badge TEXT PRIMARY KEY, name TEXT)"
        f" WITH (source = 'sql', url = '{url}', table = 'staff')"
    )


@pytest.mark.parametrize("password", PASSWORDS)
def test_no_answer_of_the_console_shows_it(client: httpx.Client, password: str) -> None:
    made = client.post("/api/statements", json={"text": create(password)})
    assert made.is_success, made.text
    texts = [made.text]
    for path in ("/api/definitions", "/api/definitions/staff", "/api/definitions?kind=table"):
        texts.append(client.get(path).text)
        assert "db.example" in texts[-1]
    asked = ("SHOW TABLES", "DESCRIBE staff", "EXPLAIN SELECT * FROM staff")
    texts += [client.post("/api/statements", json={"text": text}).text for text in asked]
    for text in texts:
        assert password not in text
        assert password.replace("''", "'") not in text
        assert "s3cret" not in text


def test_parameters_of_an_address_are_hidden_too(client: httpx.Client) -> None:
    text = create("x", "?sslmode=require&sslpassword=s3cret&password=s3cret2")
    assert client.post("/api/statements", json={"text": text}).is_success
    shown = client.get("/api/definitions/staff").text
    assert "s3cret" not in shown
    assert "sslmode=require" in shown


def test_errors_do_not_repeat_it(client: httpx.Client) -> None:
    wrong = create("s3cret").replace("'sql'", "'csv'").replace("url =", "path =")
    for text in (
        create("s3cret") + ", nonsense",
        wrong,
        create("s3cret").replace("sql", "sqll", 1),
    ):
        answer = client.post("/api/statements", json={"text": text})
        assert answer.status_code == 400, text
        assert "s3cret" not in answer.text


def test_the_name_of_a_secret_is_shown(client: httpx.Client) -> None:
    text = create("x").replace("postgresql://reader:x@db.example:5432/base", "secret:staff")
    assert client.post("/api/statements", json={"text": text}).is_success
    shown = client.get("/api/definitions/staff").json()
    assert shown["options"]["url"] == "secret:staff"


def test_what_holds_no_password_stays_as_it_is() -> None:
    for text in (
        "http://127.0.0.1:8420/queries?name=a",
        "SELECT 'a:b@c', x FROM s WHERE password = 'x' AND token = y;",
        "mqtt://broker:1883, mqtts://broker",
        "sqlite:///staff.db",
        "secret:staff",
    ):
        assert redacted(text) == redacted_address(text) == text


def test_log_lines_are_written_without_it() -> None:
    formatter = _Formatter("%(levelname)s %(message)s")
    said: dict[str, Any] = {"args": ("amqp://u:s3cret@h",), "msg": "cannot reach %s"}
    error = ValueError("postgresql://u:s3cret@h/d")
    trace = (type(error), error, None)
    record = logging.LogRecord("n", logging.ERROR, "p", 1, exc_info=trace, **said)
    line = formatter.format(record)
    assert "ERROR cannot reach amqp://u:***@h" in line
    assert "ValueError" in line
    assert "s3cret" not in line
