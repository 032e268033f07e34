"""A simulated building in which nothing stirs, so that only what a test does changes answers."""

from tests.end_to_end.federation import Federation


def hold_still(up: Federation) -> None:
    """Keep all seats and lights as they are for ten minutes, once each has reported.

    Before that an answer may rest on a part of the building only, and people come and go by
    themselves. A gateway carries out its orders one after the other: the last one turns a seat
    over, and when that is seen all before it are done.
    """
    seats_of: dict[str, list[str]] = {}
    for sensor in up.features("sensor"):
        if sensor["kind"] == "seat":
            seats_of.setdefault(sensor["gateway"], []).append(sensor["mid"])
    machines = {mid for seats in seats_of.values() for mid in seats}
    lit = {s["room"] for s in up.features("sensor") if s["kind"] == "light"}
    seats = up.start_query("SELECT mid, weightLevel >= 5.0 AS taken FROM SeatSensor")
    lights = up.start_query("SELECT rid, status FROM RoomSensor")
    up.until(lambda: {mid for mid, _ in up.rows(seats)} == machines)
    up.until(lambda: {rid for rid, _ in up.rows(lights)} == lit)

    status_of: dict[str, str] = dict(up.rows(lights))
    for room, status in status_of.items():
        up.simulate("lights_on" if status == "open" else "lights_off", room)
    taken: dict[str, bool] = dict(up.rows(seats))
    for gateway in seats_of.values():
        taken[gateway[-1]] = not taken[gateway[-1]]
        for mid in gateway:
            up.simulate("sit" if taken[mid] else "leave", mid)
    up.until(lambda: dict(up.rows(seats)) == taken)
    up.until(lambda: dict(up.rows(lights)) == status_of)
    up.stop_query(seats)
    up.stop_query(lights)
