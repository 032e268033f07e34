SELECT mid, rid, weightLevel >= 5.0 AS taken FROM SeatSensor
