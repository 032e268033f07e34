"""The recipes of the connectors http and http_push, with the payloads of the devices."""

import httpx

from gateway.connectors.http.http_connector import HttpConnector
from gateway.connectors.http_push.push_connector import PushConnector
from tests.docs.recipes import as_csv, recipe
from tests.gateway.connectors.http.pages import answer, pages
from tests.gateway.connectors.serving import in_loop, serving, until

# The shape of the vendor's example for Switch.GetStatus (Gen2 API, component Switch).
SHELLY = """{"id":0,"source":"init","output":true,"apower":8.9,"voltage":237.5,"freq":50.0,
"current":0.065,"aenergy":{"total":6.532,"by_minute":[45.199,47.141,88.397],
"minute_ts":1626935779},"temperature":{"tC":23.6,"tF":74.4}}"""
DIGEST = (
    'WWW-Authenticate: Digest qop="auth", realm="shellyplus1pm-1", nonce="60dc", algorithm=SHA-256'
)


@in_loop
async def test_a_shelly_plug() -> None:
    told = recipe("A Shelly plug (second generation) over HTTP")
    async with pages() as plug:
        path = "/rpc/Switch.GetStatus?id=0"
        plug.put(path, answer("", DIGEST, status="401 Unauthorized"), answer(SHELLY))
        host = f"127.0.0.1:{plug.port}"
        statement = told.statement.replace("192.0.2.10, 192.0.2.11", host)
        async with serving(HttpConnector(), told.endpoint, statement) as served:
            await served.until_rows(1)
    found = [{**served.readings[0].values, "device": "192.0.2.10"}]
    assert as_csv(found) == told.rows
    assert served.problems == []


# Shortened from pages of power strips: a head without cells, references, a tag left open.
STRIP = """<html><head><title>PDU</title></head><body><h1> Rack
 7</h1><table id=outlets><tr><th>No<th>Name<th>State<th>Current</tr>
<tr><td>1</td><td>switch</td><td><b>ON</b></td><td>0.4 A</td></tr>
<tr><td>2<td>server &amp; disks<td>OFF<td>0.0 A</table><p>Firmware 1.2<br></body></html>"""


@in_loop
async def test_a_power_strip_with_a_web_page() -> None:
    told = recipe("A power strip with a web page")
    async with pages() as strip:
        strip.put("/outlets.htm", answer(STRIP, "Content-Type: text/html"))
        endpoint = {**told.endpoint, "url": strip.url}
        async with serving(HttpConnector(), endpoint, told.statement) as served:
            await served.until_rows(2)
    assert as_csv(reading.values for reading in served.readings[:2]) == told.rows
    assert served.problems == []


# Shortened from the vendor's documentation (Data Formats, uplink messages).
UPLINK = """{"end_device_ids": {"device_id": "dev1", "application_ids": {"application_id": "app1"},
"dev_eui": "0004A30B001C0530", "dev_addr": "00BCB929"}, "correlation_ids": ["as:up:01E0WZGT6Y"],
"received_at": "2020-02-12T15:15:07.000000000Z", "uplink_message": {"f_port": 1, "f_cnt": 10,
"frm_payload": "gkHe", "decoded_payload": {"temperature": 21.5, "luminosity": 0.64},
"rx_metadata": [{"gateway_ids": {"gateway_id": "gtw1"}, "rssi": -35, "snr": 5.2}],
"settings": {"data_rate": {"lora": {"bandwidth": 125000, "spreading_factor": 7}}}}}"""


@in_loop
async def test_a_webhook_of_the_things_stack() -> None:
    told = recipe("The Things Stack by webhook")
    endpoint = {**told.endpoint, "port": 0, "host": "127.0.0.1"}
    async with serving(PushConnector(), endpoint, told.statement) as served:
        await until(lambda: bool(served.notes))
        url = f"http://{served.notes[0].removeprefix('listening on ')}/ttn/up"
        async with httpx.AsyncClient(trust_env=False) as stack:
            headers = {"Authorization": "Bearer a-long-random-text"}
            answer = await stack.post(url, content=UPLINK, headers=headers)
    assert answer.status_code == 202
    assert as_csv(reading.values for reading in served.readings) == told.rows
    assert served.problems == []
