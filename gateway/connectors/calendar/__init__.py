"""Calendars: the reservations that hold now, from an iCalendar file or address (RFC 5545)."""
