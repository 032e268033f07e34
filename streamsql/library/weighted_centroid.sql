-- Where each badge is: the mean of the receivers that hear it, weighted by signal strength.
--
-- Reads heard(badge, receiver, rssi, ts) and receiver(receiver, room, floor, x, y). A receiver
-- counts by its mean RSSI of 10 s with the weight 10^(rssi / 20). Floor and room are those of the
-- best receiver; only receivers of this floor with x and y make the point (none: it is NULL). The
-- spread is their weighted distance from the point (root mean square, in metres), the confidence the
-- share of the room in the weight of all receivers.
CREATE VIEW weighted_centroid (badge, room, floor, x, y, spread, confidence) AS
  WITH recent (badge, receiver, rssi) AS (
    SELECT badge, receiver, AVG(rssi) FROM heard [RANGE 10 SECONDS]
    WHERE rssi IS NOT NULL GROUP BY badge, receiver),
  known (badge, receiver, room, floor, x, y, rssi, weight) AS (
    SELECT n.badge, n.receiver, r.room, r.floor, r.x, r.y, n.rssi, POWER(10.0, n.rssi / 20.0)
    FROM recent n JOIN receiver r ON r.receiver = n.receiver),
  weighed (badge, receiver, room, floor, x, y, rssi, weight, pull) AS (
    SELECT badge, receiver, room, floor, x, y, rssi, weight,
      CASE WHEN x IS NOT NULL AND y IS NOT NULL THEN weight END
    FROM known),
  nearest (badge, room, floor) AS (
    SELECT badge, room, floor FROM weighed
    QUALIFY ROW_NUMBER() OVER (PARTITION BY badge ORDER BY rssi DESC, receiver) = 1),
  centre (badge, room, floor, x, y) AS (
    SELECT n.badge, n.room, n.floor,
      SUM(w.pull * w.x) / SUM(w.pull), SUM(w.pull * w.y) / SUM(w.pull)
    FROM nearest n JOIN weighed w ON w.badge = n.badge AND w.floor IS NOT DISTINCT FROM n.floor
    GROUP BY n.badge, n.room, n.floor),
  share (badge, share) AS (
    SELECT n.badge,
      SUM(CASE WHEN w.room = n.room THEN w.weight ELSE 0.0 END) / SUM(w.weight)
    FROM nearest n JOIN weighed w ON w.badge = n.badge GROUP BY n.badge)
  SELECT c.badge, c.room, c.floor, c.x, c.y,
    SQRT(SUM(w.pull * (POWER(w.x - c.x, 2) + POWER(w.y - c.y, 2))) / SUM(w.pull)),
    s.share
  FROM centre c
  JOIN weighed w ON w.badge = c.badge AND w.floor IS NOT DISTINCT FROM c.floor
  JOIN share s ON s.badge = c.badge
  GROUP BY c.badge, c.room, c.floor, c.x, c.y, s.share;
