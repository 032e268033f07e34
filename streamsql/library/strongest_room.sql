-- The room whose receiver hears each badge best, with hysteresis.
--
-- Reads heard(badge, receiver, rssi, ts) and receiver(receiver, room, floor, x, y). A receiver
-- counts by its mean RSSI of 10 s; the one that was best over 30 s gets 4 dB more, so that a
-- badge between two rooms does not jump. The confidence is the lead over the next room (over -100
-- dBm if no other room hears the badge), 1 from 20 dB on.
CREATE VIEW strongest_room (badge, room, floor, receiver, rssi, confidence) AS
  WITH recent (badge, receiver, rssi) AS (
    SELECT badge, receiver, AVG(rssi) FROM heard [RANGE 10 SECONDS]
    WHERE rssi IS NOT NULL GROUP BY badge, receiver),
  longer (badge, receiver, rssi) AS (
    SELECT badge, receiver, AVG(rssi) FROM heard [RANGE 30 SECONDS]
    WHERE rssi IS NOT NULL GROUP BY badge, receiver),
  steady (badge, receiver) AS (
    SELECT l.badge, ARG_MAX(l.receiver, l.rssi)
    FROM longer l JOIN receiver r ON r.receiver = l.receiver GROUP BY l.badge),
  scored (badge, room, floor, receiver, rssi, score) AS (
    SELECT n.badge, r.room, r.floor, n.receiver, n.rssi,
      n.rssi + CASE WHEN s.receiver = n.receiver THEN 4.0 ELSE 0.0 END
    FROM recent n
    JOIN receiver r ON r.receiver = n.receiver
    JOIN steady s ON s.badge = n.badge),
  best (badge, room, floor, receiver, rssi, score) AS (
    SELECT badge, room, floor, receiver, rssi, score FROM scored
    QUALIFY ROW_NUMBER() OVER (PARTITION BY badge, room ORDER BY score DESC, receiver) = 1),
  compared (badge, room, floor, receiver, rssi, score, rival, place) AS (
    SELECT badge, room, floor, receiver, rssi, score,
      LEAD(score) OVER (PARTITION BY badge ORDER BY score DESC, receiver),
      ROW_NUMBER() OVER (PARTITION BY badge ORDER BY score DESC, receiver)
    FROM best)
  SELECT badge, room, floor, receiver, rssi,
    LEAST(1.0, GREATEST(0.0, (score - COALESCE(rival, -100.0)) / 20.0))
  FROM compared WHERE place = 1;
