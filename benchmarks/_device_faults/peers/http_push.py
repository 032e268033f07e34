"""A device that posts its numbers, a hundred lines at most, until each post is answered 202."""

import time

import httpx

from benchmarks._device_faults.number_log import Event
from benchmarks._device_faults.peers.peer import Pace, peer_arguments

BATCH = 100
TOKEN = "numbers-of-a-device"  # noqa: S105 - of a device that is made up
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/x-ndjson"}


def main() -> None:
    """Post all numbers, in order."""
    arguments = peer_arguments()
    arguments.wait_to_go()
    log = arguments.log
    sent = begin = log.next_number(Event.ACKNOWLEDGED)
    pace = Pace(arguments.rate)
    url = f"http://127.0.0.1:{arguments.port}/pushed"
    with httpx.Client(headers=HEADERS, timeout=20, trust_env=False) as client:
        while sent < arguments.count:
            end = min(begin + pace.due(), sent + BATCH, arguments.count)
            if end <= sent:
                pace.pause(sent - begin)
                continue
            body = "".join(f'{{"n": {number}}}\n' for number in range(sent, end))
            log.add(Event.OFFERED, sent, end - 1)
            try:
                is_kept = client.post(url, content=body).status_code == httpx.codes.ACCEPTED
            except httpx.HTTPError:
                is_kept = False
            if is_kept:
                log.add(Event.ACKNOWLEDGED, sent, end - 1)
                sent = end
            else:
                time.sleep(0.1)


if __name__ == "__main__":
    main()
