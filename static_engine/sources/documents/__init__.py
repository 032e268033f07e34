"""Tables in documents: maps (GeoJSON, IMDF), calendars (iCalendar) and models (RDF, Brick).

Each reader offers columns by name; `offered_rows.py` picks the declared ones. A document is held in
memory, so its size has a bound.
"""
