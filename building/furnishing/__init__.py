"""What stands in a building: desks, machines, sensors, gateways, calendars."""
