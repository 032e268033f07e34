"""The simulated building in the past: a function of seed and time alone.

People come on weekdays and warm the rooms, lights and machines follow them. Each Wednesday one room
of a gateway is too warm for two hours, and now and then a gateway is away for an hour: it has no
readings of it. Times of day are UTC.

Rows are cut into packs by the hour: the same hour gives packs of the same numbers whenever it is
asked for, so what is there already is known.
"""

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence

from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.motes.mote_field import Mote
from gateway.connectors.motes.sensing import OPEN_LUX, TOPIC_OF_KIND
from gateway.connectors.motes.world import SECOND, TASKS
from gateway.connectors.reading import PastPack, Reading

HOUR = 3_600 * SECOND
DAY = 24 * HOUR
MOTES_AT_ONCE = 50
"""Of which a pack has readings."""
_PARTS = 2**12
_SOURCES = 2**20
_INCIDENT_DAY, _INCIDENT_HOURS, _INCIDENT_RISE = 2, (13, 14), 9.0
_AWAY_DAYS = 9
"""A gateway is away for an hour about every so many days."""


def _unit(*parts: object) -> float:
    return zlib.crc32(":".join(map(str, parts)).encode()) / 2**32


def weekday(now: int) -> int:
    """Return the day of the week of a time, Monday 0.

    Examples:
        >>> weekday(0)  # a Thursday
        3
    """
    return (now // DAY + 3) % 7


class PastWorld:
    """The past of one gateway's motes.

    Args:
        gateway: Its id.
        seed: Of everything random.
        motes: In the order in which packs are cut.
        live_machine: The machine that is real: nobody knows its load of then.
    """

    def __init__(
        self, gateway: str, seed: int, motes: Sequence[Mote], live_machine: str = ""
    ) -> None:
        self._gateway = gateway
        self._seed = seed
        self._live = live_machine
        self._of_topic: dict[str, list[Mote]] = {}
        for mote in motes:
            topic = TOPIC_OF_KIND.get(mote.kind, "")
            if mote.kind == "rfid" or not topic or (mote.kind in _OF_MACHINES and not mote.mid):
                continue
            if mote.kind == "load" and mote.mid == live_machine:
                continue
            self._of_topic.setdefault(topic, []).append(mote)
        self._rooms = sorted({mote.rid for mote in motes if mote.kind == "temperature"})

    def packs(
        self, sources: Mapping[str, Sequence[DeclaredSource]], hour: int, every: int
    ) -> Iterator[PastPack]:
        """Yield the readings of an hour.

        Args:
            sources: By the topic that they take.
            hour: Since 1970.
            every: Microseconds between two readings of a sensor.

        Raises:
            ValueError: The motes of a kind are too many to be numbered.
        """
        if self.is_away(hour):
            return
        for topic, motes in self._of_topic.items():
            if len(motes) > MOTES_AT_ONCE * _PARTS:
                raise ValueError(f"more than {MOTES_AT_ONCE * _PARTS:,} motes of one kind")
            for source in sources.get(topic, ()):
                own = zlib.crc32(source.name.encode()) % _SOURCES
                for part in range(0, len(motes), MOTES_AT_ONCE):
                    number = (hour * _SOURCES + own) * _PARTS + part // MOTES_AT_ONCE
                    some = motes[part : part + MOTES_AT_ONCE]
                    yield PastPack(number, source.name, self._read(source, some, hour, every))

    def _read(
        self, source: DeclaredSource, motes: Sequence[Mote], hour: int, every: int
    ) -> list[Reading]:
        found: list[Reading] = []
        for mote in motes:
            begin = hour * HOUR + int(_unit(mote.sensor) * every)
            for now in range(begin, (hour + 1) * HOUR, every):
                found += source.read_record(self._sensed(mote, now), None, mote.sensor, time=now)
        return found

    def is_away(self, hour: int) -> bool:
        """Tell the hours, counted from 1970, in which the gateway was away."""
        chance = _unit(self._seed, self._gateway, "away", hour // 24) * _AWAY_DAYS
        return chance < 1 and int(chance * 24) == hour % 24

    def incident_room(self, now: int) -> str:
        """Return the room that is too warm in the week of a time, or empty."""
        week = (now // DAY + 3) // 7
        chance = _unit(self._seed, self._gateway, "incident", week)
        return self._rooms[int(chance * len(self._rooms))] if self._rooms else ""

    def _sensed(self, mote: Mote, now: int) -> dict[str, object]:
        match mote.kind:
            case "seat":
                taken = self._is_taken(mote.mid or "", now)
                noise = _unit(self._seed, mote.mid, now)
                weight = 48.0 + 47.0 * noise if taken else 0.8 * noise
                return {"mid": mote.mid, "rid": mote.rid, "weightlevel": round(weight, 1)}
            case "light":
                lux = self._light(mote.rid, now)
                status = "open" if lux > OPEN_LUX else "closed"
                return {"rid": mote.rid, "light": lux, "status": status}
            case "temperature":
                place: dict[str, object] = {"x": mote.x, "y": mote.y, "level": mote.level}
                celsius = self.celsius(mote.rid, now)
                return {"sensor": mote.sensor, "rid": mote.rid, "celsius": celsius, **place}
            case "energy":
                watts = round(58 + 90 * self._cpu(mote.mid or "", now), 1)
                return {"mid": mote.mid, "watts": watts}
            case _:
                return self._load(mote.mid or "", now)

    def _load(self, mid: str, now: int) -> dict[str, object]:
        cpu = self._cpu(mid, now)
        task = TASKS[int(_unit(self._seed, mid, now // HOUR) * len(TASKS))]
        return {
            "mid": mid,
            "cpu": cpu,
            "memory": round(0.2 + 0.5 * cpu, 3),
            "users": int(cpu > 0.1),
            "task": task if cpu > 0.1 else "idle",
            "task_cpu": round(cpu * 0.8, 3),
            "celsius": round(34 + 30 * cpu, 1),
        }

    def celsius(self, rid: str, now: int) -> float:
        """Return the temperature of a room: warm at noon, more so while people work."""
        hour = now % DAY / HOUR
        noon = max(math.cos((hour - 13.0) / 12.0 * math.pi), 0.0)
        warmth = noon * (3.0 if weekday(now) < 5 else 1.2)
        is_incident = weekday(now) == _INCIDENT_DAY and int(hour) in _INCIDENT_HOURS
        rise = _INCIDENT_RISE if is_incident and rid == self.incident_room(now) else 0.0
        return round(20.0 + warmth + rise + _unit(self._seed, rid, now // (300 * SECOND)) - 0.5, 2)

    def _is_taken(self, mid: str, now: int) -> bool:
        hour = now % DAY // HOUR
        works = weekday(now) < 5 and 8 <= hour < 18
        return _unit(self._seed, mid, "seat", now // HOUR) < (0.7 if works else 0.02)

    def _light(self, rid: str, now: int) -> float:
        hour = now % DAY // HOUR
        works = weekday(now) < 5 and 7 <= hour < 19
        noise = _unit(self._seed, rid, now)
        is_on = works and _unit(self._seed, rid, "light", now // HOUR) >= 0.12
        return round(330 + 60 * noise, 1) if is_on else round(8 + 6 * noise, 1)

    def _cpu(self, mid: str, now: int) -> float:
        noise = _unit(self._seed, mid, "cpu", now)
        return round(0.25 + 0.7 * noise if self._is_taken(mid, now) else 0.02 + 0.06 * noise, 3)


_OF_MACHINES = ("seat", "energy", "load")
