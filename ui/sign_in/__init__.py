"""Sign-in, the roles that routes need, and the refusal to be reached without accounts.

`sign_in_layer.py` stands before the application: it finds out who asks (`session_cookie.py`, or a
token) and compares with `route_roles.py`. `sign_in_routes.py` and `people_routes.py` are the REST
interface, `exposure.py` decides whether a console may start.
"""
