/* Needs the building of `make up`: pando query run "$(cat docs/examples/walk.sql)" */
WITH RECURSIVE walk(point, cost, path) AS (
  SELECT point, 0.0, point FROM Rooms WHERE rid = 'L101'
  UNION
  SELECT e.dst, w.cost + e.distance, w.path || '>' || e.dst
  FROM walk w JOIN RoutingPoint e ON e.src = w.point),
best AS (SELECT point, MIN(cost) AS cost, ARG_MIN(path, cost) AS path FROM walk GROUP BY point)
SELECT MIN(b.cost) AS distance, ARG_MIN(f.mid, b.cost) AS mid, ARG_MIN(b.path, b.cost) AS path
FROM best b JOIN FreeMachines f ON f.point = b.point
JOIN MachineSoftware s ON s.mid = f.mid WHERE s.software = 'LaTeX'
