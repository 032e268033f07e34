-- Where each badge was last seen, by receivers that give no signal strength (RFID, infrared, doors).
--
-- Reads seen(badge, receiver, ts) and receiver(receiver, room, floor, x, y). The newest sighting of
-- a day counts; of equal times the receiver whose name sorts first. The point is the receiver's.
-- The confidence falls with age (1 up to a minute, 0.8 up to ten, 0.5 up to an hour, then 0.25) and
-- is multiplied by the share of the room in the sightings of the last minute, if there are any.
CREATE VIEW last_sighting (badge, room, floor, x, y, receiver, ts, confidence) AS
  WITH known (badge, receiver, room, floor, x, y, ts) AS (
    SELECT s.badge, r.receiver, r.room, r.floor, r.x, r.y, s.ts
    FROM seen [RANGE 1 DAY] s JOIN receiver r ON r.receiver = s.receiver
    WHERE s.ts IS NOT NULL),
  newest (badge, room, floor, x, y, receiver, ts) AS (
    SELECT badge, room, floor, x, y, receiver, ts FROM known
    QUALIFY ROW_NUMBER() OVER (PARTITION BY badge ORDER BY ts DESC, receiver) = 1),
  recent (badge, room) AS (
    SELECT s.badge, r.room
    FROM seen [RANGE 1 MINUTE] s JOIN receiver r ON r.receiver = s.receiver
    WHERE s.ts IS NOT NULL),
  share (badge, share) AS (
    SELECT n.badge, SUM(CASE WHEN c.room = n.room THEN 1.0 ELSE 0.0 END) / COUNT(*)
    FROM newest n JOIN recent c ON c.badge = n.badge GROUP BY n.badge),
  fresh (badge, freshness) AS (
    SELECT badge, 1.0 FROM recent
    UNION ALL
    SELECT s.badge, 0.8
    FROM seen [RANGE 10 MINUTES] s JOIN receiver r ON r.receiver = s.receiver
    WHERE s.ts IS NOT NULL
    UNION ALL
    SELECT s.badge, 0.5
    FROM seen [RANGE 1 HOUR] s JOIN receiver r ON r.receiver = s.receiver
    WHERE s.ts IS NOT NULL
    UNION ALL
    SELECT badge, 0.25 FROM known),
  age (badge, freshness) AS (SELECT badge, MAX(freshness) FROM fresh GROUP BY badge)
  SELECT n.badge, n.room, n.floor, n.x, n.y, n.receiver, n.ts,
    a.freshness * COALESCE(s.share, 1.0)
  FROM newest n
  JOIN age a ON a.badge = n.badge
  LEFT JOIN share s ON s.badge = n.badge;
