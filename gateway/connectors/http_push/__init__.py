"""The connector http_push: devices and other services send their readings to the gateway.

`push_options` what an endpoint and a source may say; `bounded_server` an HTTP server that holds no
more than it can; `push_connector` who may send what to which source. Needs the extra `http`.
"""
