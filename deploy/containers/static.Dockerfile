# The static engine (Spark driver), and the same image for Spark's master and workers: Python, its
# libraries and Spark must agree on all of them.
FROM python:3.11-slim-bookworm

# spark-class is a bash script and asks ps about its child.
RUN apt-get update \
  && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
  && rm -rf /var/lib/apt/lists/*

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/opt/pando \
    PYSPARK_PYTHON=/usr/local/bin/python \
    SPARK_HOME=/usr/local/lib/python3.11/site-packages/pyspark \
    SPARK_CONF_DIR=/opt/pando/deploy/spark
ENV PATH=$PATH:$SPARK_HOME/bin
WORKDIR /opt/pando

COPY requirements/static.txt requirements/static.txt
RUN pip install --no-cache-dir --require-hashes -r requirements/static.txt

COPY deploy/spark/ deploy/spark/
COPY streamsql/ streamsql/
COPY host/ host/
COPY static_engine/ static_engine/

RUN useradd --uid 10001 --create-home pando && mkdir /var/lib/pando /srv/lake && chown pando /var/lib/pando /srv/lake
USER pando
VOLUME /var/lib/pando

# Spark's JVMs start children: tini reaps them.
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "static_engine", "--config", "/srv/pando/run/static.json"]
