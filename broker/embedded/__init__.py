"""Pando's own small MQTT broker: one process, loopback only, MQTT 3.1.1 and 5.

`python -m broker.embedded --port 1883` runs it. It is the default on one machine; anything
that must be reachable from outside, or survive a restart with its retained set, uses Mosquitto or
EMQX.

What it does: QoS 0 and 1 in both directions, retained messages, wills (with delay), persistent
sessions with bounded offline queues, takeover, keep-alive, redelivery, wildcards, shared
subscriptions, message and session expiry, passwords and access rules.

Decisions:

* A client may *publish* with QoS 2 (the handshake is done, duplicates are filtered per session);
  the message travels on at QoS 1. A wish to *subscribe* at QoS 2 is granted 1, as MQTT allows.
* A full queue drops the *newest* message and counts it (`$SYS/broker/messages/dropped`), as
  Mosquitto does: what was queued stays a gapless prefix, so a reader sees one gap and resyncs.
* A client that does not read is held: nothing is read from it, QoS 1 waits in its bounded queue,
  QoS 0 in a smaller one; if it stays so until its keep-alive is over it is disconnected.
* Nothing is kept on disk; gateways publish their retained state again when they reconnect.
* Not supported, and said so to MQTT 5 clients: topic aliases, subscription identifiers, enhanced
  authentication.

Bottom to top: `packets` is the protocol without IO; `subscription_tree`, `retained`,
`mqtt_session`, `embedded_broker` are the state without IO; `connection` and `server` are the
asyncio part.
"""
