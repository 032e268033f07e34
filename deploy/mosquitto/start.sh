#!/bin/sh
# Make the accounts from the environment, if there are none yet, then become the broker.
#
#   PANDO_BROKER_USERS   "id:password id:password …", one per service (compose sets it from .env).
#                        The ids coordinator, base, static and viewer say what they are; all others
#                        are gateways.
#   PANDO_FEDERATION     the federation's name, as `site` in the settings of services
#
# Accounts that exist are kept: the coordinator has changed them. To begin anew remove the file.
set -eu

config=${1:-/mosquitto/config/mosquitto.conf}
accounts=${2:-/mosquitto/data/dynamic-security.json}
roles=${3:-/mosquitto/config/roles}
federation=${PANDO_FEDERATION:-demo}
umask 077

fail() {
  echo "$1" >&2
  exit 2
}

is_id() {
  case $1 in
    '' | *[!A-Za-z0-9_-]*) return 1 ;;
  esac
  [ ${#1} -le 64 ]
}

# Print the account of an id and its hash, as mosquitto_passwd writes it: id:$7$iterations$salt$hash
account() {
  rest=${2#*:\$7\$}
  iterations=${rest%%\$*}
  rest=${rest#*\$}
  printf '{"username": "%s", "clientid": "%s", "roles": [{"rolename": "site-%s"}], ' "$1" "$1" "$1"
  printf '"password": "%s", "salt": "%s", "iterations": %s}\n' \
    "${rest#*\$}" "${rest%%\$*}" "$iterations"
}

make_accounts() {
  [ -n "${PANDO_BROKER_USERS:-}" ] ||
    fail "PANDO_BROKER_USERS is empty: give every service an id and a password"
  is_id "$federation" || fail "PANDO_FEDERATION: '$federation' is not an id"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  : > "$work/passwords"
  : > "$work/clients"
  : > "$work/roles"
  for pair in $PANDO_BROKER_USERS; do
    id=${pair%%:*}
    password=${pair#*:}
    if [ "$id" = "$pair" ] || [ -z "$password" ] || ! is_id "$id"; then
      fail "PANDO_BROKER_USERS: expected id:password, got an entry that begins with '$id'"
    fi
    case $password in
      *:*) fail "PANDO_BROKER_USERS: the password of '$id' has a colon; use letters, digits, - and _" ;;
    esac
    if grep -q "^$id:" "$work/passwords"; then
      fail "PANDO_BROKER_USERS: '$id' is there twice"
    fi
    printf '%s:%s\n' "$id" "$password" >> "$work/passwords"
  done
  # From a file: arguments of a program are shown to everybody on the machine.
  mosquitto_passwd -U "$work/passwords"
  while IFS=: read -r id _; do
    kind=$id
    [ -f "$roles/$kind.json" ] || kind=gateway
    [ ! -s "$work/clients" ] || echo , | tee -a "$work/clients" >> "$work/roles"
    account "$id" "$(grep "^$id:" "$work/passwords")" >> "$work/clients"
    sed "s/@SITE@/$id/g; s/@FEDERATION@/$federation/g" "$roles/$kind.json" >> "$work/roles"
  done < "$work/passwords"
  {
    echo '{"defaultACLAccess": {"publishClientSend": false, "publishClientReceive": false,'
    echo '"subscribe": false, "unsubscribe": true}, "groups": [], "clients": ['
    cat "$work/clients"
    echo '], "roles": ['
    cat "$work/roles"
    echo ']}'
  } > "$accounts.new"
  mv "$accounts.new" "$accounts"
  rm -rf "$work"
  trap - EXIT
}

[ -s "$accounts" ] || make_accounts
unset PANDO_BROKER_USERS

exec mosquitto -c "$config"
