# Mosquitto with accounts that the coordinator changes (dynamic security), and TLS. Accounts and
# persistent state are in /mosquitto/data, the certificate in /mosquitto/certificates.
FROM eclipse-mosquitto:2.0.20

COPY deploy/mosquitto/mosquitto.conf /mosquitto/config/
COPY deploy/mosquitto/tls.conf /mosquitto/config/conf.d/
COPY deploy/mosquitto/roles/ /mosquitto/config/roles/
COPY --chmod=0755 deploy/mosquitto/start.sh /usr/local/bin/start-broker
# The job `site` makes the broker's key as this user, who alone may read it.
RUN adduser -D -H -u 10001 pando \
  && mkdir -p /mosquitto/certificates \
  && chown -R pando /mosquitto \
  && chmod 0700 /mosquitto/data
USER pando
VOLUME /mosquitto/data
EXPOSE 8883

ENTRYPOINT ["start-broker"]
