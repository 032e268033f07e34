#!/bin/sh
# Add a gateway to the deployment that runs: PANDO_TOKEN=pando_... sh deploy/containers/add_gateway.sh NAME
#
#   PANDO_TOKEN   API token of an administrator; not needed where there are no accounts
#
# The gateway gets account, password and certificate, and starts; nothing else is restarted.
set -eu

name=${1:-}
console=http://127.0.0.1:8080 # in the coordinator's own network, where the token travels
folder=/var/lib/pando/$name

case $name in
  '' | *[!A-Za-z0-9_-]*)
    echo "usage: sh deploy/containers/add_gateway.sh NAME   (letters, digits, _ and -)" >&2
    exit 2
    ;;
esac

answer=$(docker compose exec -T -e "PANDO_TOKEN=${PANDO_TOKEN:-}" coordinator \
  python -m deploy.cli.entry gateway provision "$name" --console "$console" --format json)
token=$(printf '%s' "$answer" | sed -n 's/.*"token": *"\(pando1\.[A-Za-z0-9_-]*\)".*/\1/p')
if [ -z "$token" ]; then
  echo "the console gave no token: $answer" >&2
  exit 1
fi

docker compose run --rm -T join \
  python -m gateway.join "$console" "$token" --data "$folder" --metrics-port 9464
docker compose run -d --name "pando-$name" gateway \
  python -m gateway --config "$folder/gateway.json"
docker update --restart unless-stopped "pando-$name" > /dev/null
echo "$name runs as container pando-$name"
