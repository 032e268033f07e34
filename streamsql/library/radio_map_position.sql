-- Where each badge is: the three calibration points whose recorded signals are most like the ones
-- heard now.
--
-- Reads heard(badge, receiver, rssi, ts), radio_map(point, receiver, rssi) and
-- calibration_point(point, room, floor, x, y). Signals are the means of 10 s; where a receiver
-- hears only one of the two, the other one counts as -100 dBm. Points that share no receiver with
-- the badge are no candidates. Neighbours weigh 1 / (1 dB + distance). Room and floor are those
-- with most weight; neighbours of this floor make the point. The confidence is the share of the
-- room in the weight, the mismatch the distance to the nearest neighbour in dB.
CREATE VIEW radio_map_position (badge, room, floor, x, y, mismatch, confidence) AS
  WITH recent (badge, receiver, level) AS (
    SELECT badge, receiver, AVG(rssi) + 100.0 FROM heard [RANGE 10 SECONDS]
    WHERE rssi IS NOT NULL GROUP BY badge, receiver),
  badge_norm (badge, norm) AS (SELECT badge, SUM(level * level) FROM recent GROUP BY badge),
  point_norm (point, norm) AS (
    SELECT point, SUM((rssi + 100.0) * (rssi + 100.0)) FROM radio_map GROUP BY point),
  shared (badge, point, product) AS (
    SELECT n.badge, m.point, SUM(n.level * (m.rssi + 100.0))
    FROM recent n JOIN radio_map m ON m.receiver = n.receiver GROUP BY n.badge, m.point),
  neighbour (badge, point, distance) AS (
    SELECT s.badge, s.point, SQRT(GREATEST(0.0, b.norm + p.norm - 2.0 * s.product))
    FROM shared s
    JOIN badge_norm b ON b.badge = s.badge
    JOIN point_norm p ON p.point = s.point
    JOIN calibration_point c ON c.point = s.point
    QUALIFY ROW_NUMBER() OVER (PARTITION BY s.badge
      ORDER BY GREATEST(0.0, b.norm + p.norm - 2.0 * s.product), s.point) <= 3),
  placed (badge, room, floor, x, y, distance, weight, pull) AS (
    SELECT n.badge, c.room, c.floor, c.x, c.y, n.distance, 1.0 / (1.0 + n.distance),
      CASE WHEN c.x IS NOT NULL AND c.y IS NOT NULL THEN 1.0 / (1.0 + n.distance) END
    FROM neighbour n JOIN calibration_point c ON c.point = n.point),
  total (badge, weight, mismatch) AS (
    SELECT badge, SUM(weight), MIN(distance) FROM placed GROUP BY badge),
  room_weight (badge, room, floor, weight) AS (
    SELECT badge, room, floor, SUM(weight) FROM placed GROUP BY badge, room, floor),
  likely (badge, room, floor, weight) AS (
    SELECT badge, room, floor, weight FROM room_weight
    QUALIFY ROW_NUMBER() OVER (PARTITION BY badge ORDER BY weight DESC, room, floor) = 1)
  SELECT l.badge, l.room, l.floor,
    SUM(p.pull * p.x) / SUM(p.pull), SUM(p.pull * p.y) / SUM(p.pull),
    t.mismatch, l.weight / t.weight
  FROM likely l
  JOIN placed p ON p.badge = l.badge AND p.floor IS NOT DISTINCT FROM l.floor
  JOIN total t ON t.badge = l.badge
  GROUP BY l.badge, l.room, l.floor, l.weight, t.weight, t.mismatch;
