-- Free machines in open labs, with the programs they have.
--
-- Reads machines(mid), machinesoftware(mid, software), seatsensor(mid, rid, weightlevel) and
-- roomsensor(rid, status). A machine is free while less than 5 kg sit at it; a lab is open while its
-- lights are on. For one program write WHERE software = 'Word'.
CREATE VIEW free_with_software (mid, rid, software) AS
  SELECT m.mid, r.rid, s.software
  FROM machines m
  JOIN machinesoftware s ON s.mid = m.mid
  JOIN seatsensor seat ON seat.mid = m.mid
  JOIN roomsensor r ON r.rid = seat.rid
  WHERE seat.weightlevel < 5.0 AND r.status = 'open';
