#!/bin/sh
# Make the password file from the environment, then become the broker.
#
#   PANDO_BROKER_USERS   "id:password id:password …", one per service (compose sets it from .env)
set -eu

config=${1:-/mosquitto/config/mosquitto.conf}
passwords=${2:-/mosquitto/run/passwords}

if [ -z "${PANDO_BROKER_USERS:-}" ]; then
  echo "PANDO_BROKER_USERS is empty: give every service an id and a password" >&2
  exit 2
fi

umask 077
: > "$passwords"
for pair in $PANDO_BROKER_USERS; do
  id=${pair%%:*}
  password=${pair#*:}
  if [ -z "$id" ] || [ "$id" = "$pair" ] || [ -z "$password" ]; then
    echo "PANDO_BROKER_USERS: expected id:password, got an entry that begins with '$id'" >&2
    exit 2
  fi
  mosquitto_passwd -b "$passwords" "$id" "$password"
done
unset PANDO_BROKER_USERS

exec mosquitto -c "$config"
