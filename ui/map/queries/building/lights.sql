SELECT rid, status FROM RoomSensor
