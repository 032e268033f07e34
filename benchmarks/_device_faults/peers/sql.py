"""A program that inserts its numbers into a table of SQLite; what is committed must be read."""

import contextlib
import sqlite3

from benchmarks._device_faults.number_log import Event
from benchmarks._device_faults.peers.peer import Pace, peer_arguments

NAME = "numbers.db"


def main() -> None:
    """Insert all numbers, in order; each transaction holds those that are due."""
    arguments = peer_arguments()
    log = arguments.log
    path = arguments.folder / "data" / NAME
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE IF NOT EXISTS numbers (id INTEGER PRIMARY KEY, n INTEGER)")
        database.commit()
        arguments.wait_to_go()
        (sent,) = database.execute("SELECT COUNT(*) FROM numbers").fetchone()
        logged = log.next_number(Event.ACKNOWLEDGED)
        if logged < sent:
            log.add(Event.ACKNOWLEDGED, logged, sent - 1)
        begin, pace = sent, Pace(arguments.rate)
        while sent < arguments.count:
            end = min(begin + pace.due(), arguments.count)
            if end > sent:
                rows = ((number,) for number in range(sent, end))
                with database:
                    database.executemany("INSERT INTO numbers (n) VALUES (?)", rows)
                log.add(Event.ACKNOWLEDGED, sent, end - 1)
                sent = end
            pace.pause(sent - begin, 0.01)


if __name__ == "__main__":
    main()
