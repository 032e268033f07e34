"""The connector http: pages of devices, asked at intervals.

`http_options` what an endpoint and a source may say; `content` a body within its bounds, in UTF-8;
`page` one page of one host; `http_connector` all pages of an endpoint. Needs the extra `http`.
"""
