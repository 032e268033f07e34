# Coordinator and console: catalog, optimizer, REST/SSE API, pages and their assets; the stream
# engine explains rows there.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/opt/pando
WORKDIR /opt/pando

COPY requirements/console.txt requirements/console.txt
RUN pip install --no-cache-dir --require-hashes -r requirements/console.txt

COPY streamsql/ streamsql/
COPY host/ host/
COPY broker/ broker/
COPY stream_engine/ stream_engine/
COPY static_engine/ static_engine/
COPY federated_optimizer/ federated_optimizer/
COPY ui/ ui/
COPY deploy/ deploy/

RUN useradd --uid 10001 --create-home pando && mkdir /var/lib/pando && chown pando /var/lib/pando
USER pando
VOLUME /var/lib/pando
EXPOSE 8080

CMD ["python", "-m", "deploy.console", "--config", "/srv/pando/run/console.json"]
