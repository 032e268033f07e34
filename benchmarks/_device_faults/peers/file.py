"""A program that appends its numbers to a log file; what is written is what must be read."""

import os

from benchmarks._device_faults.number_log import Event
from benchmarks._device_faults.peers.peer import Pace, PeerArguments, peer_arguments

NAME = "numbers.jsonl"


def _written(arguments: PeerArguments) -> int:
    """Return how many numbers are in the file; half a line at its end is made a line of its own."""
    path = arguments.folder / "data" / NAME
    if not path.exists():
        return 0
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")
    return sum(line.endswith(b"}") for line in content.split(b"\n"))


def main() -> None:
    """Append all numbers, in order."""
    arguments = peer_arguments()
    arguments.wait_to_go()
    log = arguments.log
    sent = begin = _written(arguments)
    logged = log.next_number(Event.ACKNOWLEDGED)
    if logged < sent:
        log.add(Event.ACKNOWLEDGED, logged, sent - 1)
    pace = Pace(arguments.rate)
    file = os.open(arguments.folder / "data" / NAME, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    while sent < arguments.count:
        end = min(begin + pace.due(), arguments.count)
        if end > sent:
            lines = "".join(f'{{"n": {number}}}\n' for number in range(sent, end)).encode()
            if os.write(file, lines) != len(lines):
                raise OSError("the disk is full")
            log.add(Event.ACKNOWLEDGED, sent, end - 1)
            sent = end
        pace.pause(sent - begin, 0.01)


if __name__ == "__main__":
    main()
