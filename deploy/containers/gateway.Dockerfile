# A gateway or base site: connectors, broker session and an engine site. No Spark, no SQL parser.
# Build from the repository's root: docker build -f deploy/containers/gateway.Dockerfile .
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/opt/pando
WORKDIR /opt/pando

COPY requirements/gateway.txt requirements/gateway.txt
RUN pip install --no-cache-dir --require-hashes -r requirements/gateway.txt

COPY streamsql/ streamsql/
COPY stream_engine/ stream_engine/
COPY host/ host/
COPY gateway/ gateway/

# The disk buffer must be writable by the service's own user.
RUN useradd --uid 10001 --create-home pando && mkdir /var/lib/pando && chown pando /var/lib/pando
USER pando
VOLUME /var/lib/pando

CMD ["python", "-m", "gateway", "--config", "/srv/pando/run/gw-1.json"]
