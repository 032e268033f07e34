-- The relations of a building: what its gateways sense, what its tables store, and the views that
-- the map and the first queries read. Times are UTC; distances metres; temperatures degrees Celsius.

-- Sensed at the gateways -------------------------------------------------------------------------

-- A seat cushion at a machine's desk: the weight on it in kilograms.
CREATE SOURCE SeatSensor (mid TEXT, rid TEXT, weightLevel DOUBLE, ts TIMESTAMP, KEY (mid),
                          WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'motes', endpoint = 'building', ttl = '90 s', colocate = 'rid');

-- A room's light in lux; status is 'open' while the lights are on, else 'closed'.
CREATE SOURCE RoomSensor (rid TEXT, status TEXT, light DOUBLE, ts TIMESTAMP, KEY (rid),
                          WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'motes', endpoint = 'building', ttl = '90 s', colocate = 'rid');

-- Every temperature reading of the last ten minutes, with the mote's position.
CREATE SOURCE Temperature (sensor TEXT, rid TEXT, celsius DOUBLE, x DOUBLE, y DOUBLE, level INTEGER,
                           ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'motes', endpoint = 'building', ttl = '10 min', colocate = 'rid');

-- Electric power of a machine in watts.
CREATE SOURCE EnergyMeter (mid TEXT, watts DOUBLE, ts TIMESTAMP, KEY (mid),
                           WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'motes', endpoint = 'building', ttl = '90 s');

-- How strongly a detector hears a visitor's badge, in dBm.
CREATE SOURCE RfidBeacon (detector TEXT, tag TEXT, strength DOUBLE, ts TIMESTAMP,
                          KEY (detector, tag), WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'motes', endpoint = 'building', ttl = '10 s');

-- Load of a machine: cpu and memory as shares of 1, logged-in users, its most CPU-hungry task.
-- That of the machine which is this computer is measured.
CREATE SOURCE MachineLoad (mid TEXT, cpu DOUBLE, memory DOUBLE, users INTEGER, task TEXT,
                           task_cpu DOUBLE, celsius DOUBLE, ts TIMESTAMP, KEY (mid),
                           WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'motes', endpoint = 'building', ttl = '60 s');

-- The busiest processes of this machine itself; cpu as a share of one processor.
CREATE SOURCE Process (mid TEXT, pid INTEGER, task TEXT, cpu DOUBLE, memory DOUBLE, ts TIMESTAMP,
                       KEY (mid, pid), WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'soft_sensors', endpoint = 'machine', ttl = '15 s');

-- Reservations that hold now, from calendars.
CREATE SOURCE RoomReservation (rid TEXT, title TEXT, starts TIMESTAMP, ends TIMESTAMP, ts TIMESTAMP,
                               KEY (rid, starts, title),
                               WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'calendar', endpoint = 'calendar');

-- Radio links between motes: pdr is the packet delivery ratio, cost the expected transmissions.
CREATE LINK SOURCE Link (src TEXT, dst TEXT, cost DOUBLE, pdr DOUBLE, ts TIMESTAMP,
                         KEY (src, dst), WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'motes', endpoint = 'building', ttl = '90 s');

-- Stored ------------------------------------------------------------------------------------------

CREATE TABLE Rooms (rid TEXT PRIMARY KEY, name TEXT, kind TEXT, level INTEGER, open_lab BOOLEAN,
                    x DOUBLE, y DOUBLE, point TEXT)
  WITH (source = 'csv', path = 'rooms.csv', refresh = '10 min');

CREATE TABLE Machines (mid TEXT PRIMARY KEY, rid TEXT, host TEXT, cpu TEXT, x DOUBLE, y DOUBLE,
                       level INTEGER, point TEXT)
  WITH (source = 'csv', path = 'machines.csv', refresh = '10 min');

CREATE TABLE MachineSoftware (mid TEXT, software TEXT, version TEXT)
  WITH (source = 'csv', path = 'machine_software.csv', refresh = '10 min');

-- Possible path segments with walking distances in metres, both directions. Room is the room a
-- segment is inside, NULL where people walk to somewhere else; leaves says that it ends at a door
-- by which nobody goes on who has only come to pass through the room.
CREATE TABLE RoutingPoint (src TEXT, dst TEXT, distance DOUBLE, kind TEXT, wheelchair BOOLEAN,
                           room TEXT, leaves BOOLEAN)
  WITH (source = 'csv', path = 'routing.csv', refresh = '10 min');

-- The room a routing point is in; points of corridors and doors are in none.
CREATE TABLE PointRoom (point TEXT PRIMARY KEY, rid TEXT)
  WITH (source = 'csv', path = 'point_rooms.csv', refresh = '10 min');

CREATE TABLE RfidDetector (detector TEXT PRIMARY KEY, x DOUBLE, y DOUBLE, level INTEGER, point TEXT)
  WITH (source = 'csv', path = 'rfid_detectors.csv', refresh = '10 min');

-- Views -------------------------------------------------------------------------------------------

-- Machines nobody sits at, in rooms with the lights on that are not reserved.
CREATE VIEW FreeMachines AS
  SELECT m.mid, m.rid, m.host, m.level, m.x, m.y, m.point
  FROM SeatSensor ss
  JOIN RoomSensor sr ON sr.rid = ss.rid
  JOIN Machines m ON m.mid = ss.mid
  LEFT JOIN RoomReservation rr ON rr.rid = ss.rid
  WHERE ss.weightLevel < 5.0 AND sr.status = 'open' AND rr.rid IS NULL;

-- Where each badge is: the detector that hears it best.
CREATE VIEW VisitorPosition AS
  SELECT b.tag, d.detector, d.point, d.x, d.y, d.level
  FROM (SELECT tag, ARG_MAX(detector, strength) AS detector FROM RfidBeacon GROUP BY tag) b
  JOIN RfidDetector d ON d.detector = b.detector;

-- Motes that have read more than 27 degrees within the last half minute.
CREATE VIEW HotSensor AS
  SELECT DISTINCT sensor, x, y, level FROM Temperature [RANGE 30 SECONDS] WHERE celsius > 27.0;

-- Contiguous regions of hot sensors: who is joined to whom by steps of less than 20 metres.
CREATE RECURSIVE VIEW HotRegion (regionid, sensorid) AS
  SELECT sensor, sensor FROM HotSensor
  UNION
  SELECT a.regionid, s2.sensor
  FROM HotRegion a
  JOIN HotSensor s1 ON s1.sensor = a.sensorid
  JOIN HotSensor s2 ON s1.level = s2.level AND distance(s1.x, s1.y, s2.x, s2.y) < 20.0;

-- What the views of the library read that no sensor sends as such ----------------------------------

-- Triggered sensors are the hot ones.
CREATE VIEW Triggered AS SELECT sensor, x, y, level FROM HotSensor;

-- All temperature sensors that have been heard within the last ten minutes.
CREATE VIEW Sensors AS SELECT DISTINCT sensor, x, y, level FROM Temperature;

-- What each of them read last.
CREATE VIEW Reading AS
  SELECT sensor, ARG_MAX(celsius, ts) AS celsius FROM Temperature GROUP BY sensor;

-- The same by node of the network: the mote of a room is called after it.
CREATE VIEW Node_Reading AS
  SELECT 'm-' || rid AS node, ARG_MAX(celsius, ts) AS celsius FROM Temperature GROUP BY rid;

-- A region may begin at the first sensor of each room; it is named after the room.
CREATE VIEW Region_Seed AS
  SELECT rid AS region, MIN(sensor) AS sensor FROM Temperature GROUP BY rid;

-- What a link carries in kilobits per second: 250 at most, less what is lost.
CREATE VIEW Channel AS SELECT src, dst, 250.0 * pdr AS bandwidth FROM Link;

-- The tree over which readings are collected: each node's parent is the best linked one among those
-- nearer to the root, which is the first node in text order.
CREATE VIEW Parent (child, ancestor) AS
  WITH RECURSIVE reached (node, hops) AS (
    SELECT MIN(src), 0 FROM Link
    UNION
    SELECT l.dst, r.hops + 1 FROM reached r JOIN Link l ON l.src = r.node),
  depth (node, hops) AS (SELECT node, MIN(hops) FROM reached GROUP BY node)
  SELECT l.dst, ARG_MIN(l.src, l.cost)
  FROM Link l
  JOIN depth above ON above.node = l.src
  JOIN depth below ON below.node = l.dst
  WHERE below.hops = above.hops + 1
  GROUP BY l.dst;
