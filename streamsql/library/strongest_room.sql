-- The room whose receiver hears each badge best, with hysteresis.
--
-- Reads heard(badge, receiver, rssi, ts) and receiver(receiver, room, floor, x, y). A room counts
-- by the best mean RSSI of 10 s of its receivers. A badge stays in its room until another one is
-- 4 dB better or its room no longer hears it; then it goes to the room that has been within 4 dB of
-- the best for longest. These stays are remembered for a day. The confidence is the lead over the
-- best other room (over -100 dBm if none hears the badge): 0 at -4 dB, 1 from 20 dB on.
CREATE VIEW strongest_room (badge, room, floor, receiver, rssi, confidence) AS
  WITH recent (badge, receiver, rssi) AS (
    SELECT badge, receiver, AVG(rssi) FROM heard [RANGE 10 SECONDS]
    WHERE rssi IS NOT NULL GROUP BY badge, receiver),
  room_level (badge, room, floor, receiver, rssi) AS (
    SELECT n.badge, r.room, r.floor, n.receiver, n.rssi
    FROM recent n JOIN receiver r ON r.receiver = n.receiver
    WHERE r.room IS NOT NULL
    QUALIFY ROW_NUMBER() OVER (PARTITION BY n.badge, r.room
      ORDER BY n.rssi DESC, n.receiver) = 1),
  best (badge, rssi) AS (SELECT badge, MAX(rssi) FROM room_level GROUP BY badge),
  near (badge, room, floor, receiver, rssi) AS (
    SELECT l.badge, l.room, l.floor, l.receiver, l.rssi
    FROM room_level l JOIN best b ON b.badge = l.badge
    WHERE l.rssi > b.rssi - 4.0),
  entry (badge, room, since) AS (
    SELECT badge, room, ts FROM (ISTREAM(SELECT badge, room FROM near))
      [PARTITION BY badge, room ROWS 1 RANGE 1 DAY] AS came),
  departure (badge, room, until) AS (
    SELECT badge, room, ts FROM (DSTREAM(SELECT badge, room FROM near))
      [PARTITION BY badge, room ROWS 1 RANGE 1 DAY] AS went),
  stay (badge, room, since) AS (
    SELECT e.badge, e.room, e.since
    FROM entry e LEFT JOIN departure d ON d.badge = e.badge AND d.room = e.room
    WHERE d.until IS NULL OR d.until < e.since),
  current_room (badge, room, floor, receiver, rssi) AS (
    SELECT n.badge, n.room, n.floor, n.receiver, n.rssi
    FROM near n LEFT JOIN stay s ON s.badge = n.badge AND s.room = n.room
    QUALIFY ROW_NUMBER() OVER (PARTITION BY n.badge
      ORDER BY s.since NULLS LAST, n.room) = 1),
  rival (badge, rssi) AS (
    SELECT c.badge, MAX(l.rssi)
    FROM current_room c JOIN room_level l ON l.badge = c.badge AND l.room <> c.room
    GROUP BY c.badge)
  SELECT c.badge, c.room, c.floor, c.receiver, c.rssi,
    LEAST(1.0, GREATEST(0.0, (c.rssi - COALESCE(v.rssi, -100.0) + 4.0) / 24.0))
  FROM current_room c LEFT JOIN rival v ON v.badge = c.badge;
