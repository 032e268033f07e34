SELECT rid, title, starts, ends FROM RoomReservation
