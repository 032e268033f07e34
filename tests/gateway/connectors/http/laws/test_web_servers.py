"""Pages of a real web server: every format, ETag, HTTPS, and a login that the server checks."""

import asyncio
import hashlib
import os
import re
from pathlib import Path

import pytest

from gateway.connectors.http.http_connector import HttpConnector
from tests.certificates import make_certificate
from tests.gateway.connectors.http.pages import answer, pages
from tests.gateway.connectors.http.web_server import web_server
from tests.gateway.connectors.serving import in_loop, serving, until

ROWS = [("1.04", 21.5), ("1.05", -3.0)]
CHANGED = [("1.04", 99.0), ("1.05", -3.0)]
PLAIN = "room TEXT, celsius DOUBLE FROM 't'"

FORMATS = {
    "json": (PLAIN, "rows = '[*]'", '[{"room": "1.04", "t": 21.5}, {"room": "1.05", "t": -3}]'),
    "csv": (PLAIN, "delimiter = ';'", "room;t\n1.04;21.5\n1.05;-3\n"),
    "xml": (
        "room TEXT FROM './@id', celsius DOUBLE FROM 't'",
        "rows = 'room'",
        '<x><room id="1.04"><t>21.5</t></room><room id="1.05"><t>-3</t></room></x>',
    ),
    "html": (
        "room TEXT FROM '[0]', celsius DOUBLE FROM 'td.t'",
        "rows = 'tr'",
        "<table><tr><th>r<th>t<tr><td>1.04<td class=t>21.5<tr><td>1.05<td class=t>-3</table>",
    ),
    "senml": (
        "room TEXT FROM '@device', celsius DOUBLE FROM 't'",
        "interval = '0.1 s'",
        '[{"n": "1.04/t", "v": 21.5}, {"n": "1.05/t", "v": -3}]',
    ),
    "text": (
        "room TEXT FROM '@url', celsius DOUBLE",
        "interval = '0.1 s'",
        "21.5",
    ),
}


def source(form: str, more: str = "") -> str:
    columns, options, _ = FORMATS[form]
    interval = "" if "interval" in options else ", interval = '0.1 s'"
    return (
        f"CREATE SOURCE room ({columns}, KEY (room)) WITH (connector = 'http', endpoint = 'here', "
        f"path = '/page', format = '{form}', {options}{interval}{more})"
    )


@pytest.mark.parametrize("form", list(FORMATS))
@in_loop
async def test_a_page_of_any_format_is_read_and_again_when_it_has_changed(
    form: str, tmp_path: Path
) -> None:
    page = tmp_path / "page"
    page.write_text(FORMATS[form][2])
    async with (
        web_server(tmp_path) as (url, statuses),
        serving(HttpConnector(), {"url": url}, source(form)) as seen,
    ):
        rows = [(f"{url}/page", 21.5)] if form == "text" else ROWS
        assert await seen.until_rows(len(rows)) == rows
        await until(lambda: statuses.count(304) >= 3)
        assert seen.rows == rows, "a page that has not changed gives no row"
        page.write_text(FORMATS[form][2].replace("21.5", "99.0"))
        later = page.stat().st_mtime + 10
        os.utime(page, (later, later))
        changed = [(f"{url}/page", 99.0)] if form == "text" else CHANGED
        assert (await seen.until_rows(2 * len(rows)))[len(rows) :] == changed
    assert seen.problems == []


@pytest.mark.parametrize(
    ("more", "again"),
    [(", ttl = '1 min'", True), ("", False)],
)
@in_loop
async def test_rows_with_a_lifetime_are_renewed_by_unchanged_pages(
    more: str, again: bool, tmp_path: Path
) -> None:
    (tmp_path / "page").write_text(FORMATS["json"][2])
    async with (
        web_server(tmp_path) as (url, statuses),
        serving(HttpConnector(), {"url": url}, source("json", more)) as seen,
    ):
        await until(lambda: statuses.count(304) >= 3)
        assert (len(seen.rows) > len(ROWS)) == again
        assert set(seen.rows) == set(ROWS)


@in_loop
async def test_a_page_too_large_to_be_kept_is_sent_each_time(tmp_path: Path) -> None:
    (tmp_path / "page").write_text(FORMATS["json"][2] + " " * 20_000)
    async with (
        web_server(tmp_path) as (url, statuses),
        serving(HttpConnector(), {"url": url}, source("json", ", ttl = '1 min'")) as seen,
    ):
        await seen.until_rows(6)
    assert set(statuses) == {200}


@in_loop
async def test_https_with_an_authority_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "page").write_text(FORMATS["json"][2])
    for name in ("ca", "device"):
        make_certificate(tmp_path, name, name)
    authority = str(tmp_path / "ca.crt")
    async with web_server(tmp_path, tmp_path / "device.crt", tmp_path / "device.key") as (url, _):
        for trusting in ({"ca_file": authority}, {"check_certificate": False}):
            async with serving(HttpConnector(), {"url": url, **trusting}, source("json")) as seen:
                assert await seen.until_rows(2) == ROWS
        async with serving(HttpConnector(), {"url": url}, source("json")) as seen:
            await seen.until_problem("certificate verify failed")
            assert seen.rows == []
        # The certificate is for 127.0.0.1.
        other = {"url": url.replace("127.0.0.1", "localhost"), "ca_file": authority}
        async with serving(HttpConnector(), other, source("json")) as seen:
            await seen.until_problem("certificate verify failed")


def digest(algorithm: str, *parts: str) -> str:
    """Return the hash of RFC 7616, 3.4: of parts with colons between them."""
    name = {"MD5": "md5", "SHA-256": "sha256"}[algorithm]
    return hashlib.new(name, ":".join(parts).encode()).hexdigest()


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
@in_loop
async def test_the_response_of_a_digest_login_is_right(algorithm: str) -> None:
    challenge = (
        f'WWW-Authenticate: Digest realm="pdu", nonce="abc", qop="auth", algorithm={algorithm}'
    )
    let_in: list[bool] = []

    async def check(request: str, writer: asyncio.StreamWriter) -> None:
        given = dict(re.findall(r'(\w+)="?([^",\r]+)"?', request.partition("Digest ")[2]))
        if not given:
            writer.write(answer("", challenge, status="401 Unauthorized"))
            return
        who = digest(algorithm, "me", "pdu", "pass word")
        what = digest(algorithm, "GET", "/page")
        places = (given["nonce"], given["nc"], given["cnonce"], given["qop"])
        let_in.append(given["response"] == digest(algorithm, who, *places, what))
        body = FORMATS["json"][2]
        writer.write(answer(body if let_in[-1] else "", status="200 OK"))

    async with pages() as server:
        server.put("/page", check)
        endpoint = {"url": server.url, "user": "me", "login": "digest"}
        right = {**endpoint, "password": "pass word"}
        async with serving(HttpConnector(), right, source("json")) as seen:
            assert (await seen.until_rows(2))[:2] == ROWS
        assert set(let_in) == {True}
        let_in.clear()
        async with serving(HttpConnector(), {**endpoint, "password": "x"}, source("json")) as seen:
            await until(lambda: bool(let_in))
        assert set(let_in) == {False}
        assert seen.rows == []
