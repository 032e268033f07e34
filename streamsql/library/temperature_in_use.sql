-- How warm the machines are at which somebody sits in the light.
--
-- Reads seatsensor(mid, rid, weightlevel), roomsensor(rid, light) and machineload(mid, celsius). A
-- workstation is in use while at least 5 kg sit at it and the room around it has more than 50 lux.
-- Seat and light are in one room, so they are joined where they are sensed.
CREATE VIEW temperature_in_use (mid, rid, celsius) AS
  SELECT seat.mid, seat.rid, load.celsius
  FROM seatsensor seat
  JOIN roomsensor r ON r.rid = seat.rid
  JOIN machineload load ON load.mid = seat.mid
  WHERE seat.weightlevel >= 5.0 AND r.light > 50.0;
