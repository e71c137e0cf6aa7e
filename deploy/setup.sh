#!/usr/bin/env bash
# Installs what the build and the tests need: Debian's packages named in the
# files given (default: packages.txt), and the Python parts in build/venv.
# Safe to run twice; does nothing where all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

lists=("$@")
[ ${#lists[@]} -gt 0 ] || lists=(deploy/packages.txt)

missing=()
while read -r package; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done < <(cat "${lists[@]}")
if [ ${#missing[@]} -gt 0 ]; then
  echo "== installing: ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    echo "these packages are missing and only root can install them" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

venv=build/venv
if ! cmp -s deploy/requirements.txt "$venv/requirements.txt"; then
  echo "== installing the Python parts in $venv"
  rm -rf "$venv"
  mkdir -p build
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check \
    -r deploy/requirements.txt
  cp deploy/requirements.txt "$venv/requirements.txt"
fi
