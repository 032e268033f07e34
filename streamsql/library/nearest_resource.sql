-- The walk from every visitor to the nearest free machine that has a program, per program: which
-- machine, how far in metres, and over which points.
--
-- Reads visitorposition(tag, point), routingpoint(src, dst, distance), freemachines(mid, point) and
-- machinesoftware(mid, software). Walks begin where visitors are and follow the shortest ways only.
CREATE VIEW nearest_resource (tag, software, mid, distance, path) AS
  WITH RECURSIVE walk (tag, point, cost, path) AS (
    SELECT tag, point, 0.0, point FROM visitorposition
    UNION
    SELECT w.tag, e.dst, w.cost + e.distance, w.path || '>' || e.dst
    FROM walk w JOIN routingpoint e ON e.src = w.point),
  way (tag, point, cost, path) AS (
    SELECT tag, point, MIN(cost), ARG_MIN(path, cost) FROM walk GROUP BY tag, point),
  nearest (tag, software, mid) AS (
    SELECT w.tag, s.software, ARG_MIN(f.mid, w.cost)
    FROM way w
    JOIN freemachines f ON f.point = w.point
    JOIN machinesoftware s ON s.mid = f.mid
    GROUP BY w.tag, s.software)
  SELECT n.tag, n.software, n.mid, w.cost, w.path
  FROM nearest n
  JOIN freemachines f ON f.mid = n.mid
  JOIN way w ON w.tag = n.tag AND w.point = f.point;
