# The job that writes the site and all settings, once, before the services start.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/opt/pando
WORKDIR /opt/pando

# The console's requirements hold what building a site needs; the layer is shared with its image.
COPY requirements/console.txt requirements/console.txt
RUN pip install --no-cache-dir --require-hashes -r requirements/console.txt

COPY streamsql/ streamsql/
COPY host/ host/
COPY broker/ broker/
COPY building/ building/
COPY gateway/ gateway/
COPY static_engine/ static_engine/
COPY federated_optimizer/ federated_optimizer/
COPY ui/ ui/
COPY deploy/ deploy/

# A new volume takes over the owner of the folder it covers.
RUN useradd --uid 10001 --create-home pando \
  && mkdir -m 0700 /srv/authority /srv/broker && mkdir /srv/pando \
  && chown pando /srv/pando /srv/authority /srv/broker
USER pando
VOLUME /srv/pando /srv/authority /srv/broker

CMD ["python", "-m", "deploy.containers.prepare", "--to", "/srv/pando"]
