"""Rights at a federation's broker: to publish on topics and to read them.

`rights` is the one description. Everything a broker is configured with is made from it: roles of
Mosquitto's plug-in for dynamic security (`dynamic_security`, changed while the broker runs by
`security_commands`), and the access list for brokers without it (`access_list`).
"""
