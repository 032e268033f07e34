# Mosquitto with Pando's access list. Persistent state is in /mosquitto/data.
FROM eclipse-mosquitto:2.0.20

COPY deploy/mosquitto/mosquitto.conf deploy/mosquitto/acl /mosquitto/config/
COPY --chmod=0755 deploy/mosquitto/start.sh /usr/local/bin/start-broker
RUN mkdir -p /mosquitto/config/conf.d /mosquitto/run \
  && chown -R mosquitto:mosquitto /mosquitto \
  && chmod 0700 /mosquitto/config/acl /mosquitto/run
USER mosquitto
VOLUME /mosquitto/data
EXPOSE 1883 8883

ENTRYPOINT ["start-broker"]
