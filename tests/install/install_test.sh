#!/usr/bin/env bash
# Installs the build, builds the README's example as a project of its own
# against the installed package, and trains with the installed server.
#
# usage: install_test.sh CMAKE BUILD_DIR SOURCE_DIR
set -euo pipefail
cmake=$1 build=$2 source=$3
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
"$cmake" -S "$source/tests/install/consumer" -B "$work/consumer" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DEXAMPLE="$source/client/examples/train_rows.cc" >"$work/configure.log"
"$cmake" --build "$work/consumer"

printf 'cluster_id: "install-test"\nserver_count: 1\n' >"$work/server.textproto"
mkfifo "$work/line"
"$work/prefix/bin/rowhouse-server" --config="$work/server.textproto" \
  --listen=127.0.0.1:0 >"$work/line" 2>"$work/server.log" &
server=$!
read -r line <"$work/line"
"$work/consumer/consumer" "${line##* }" | tee "$work/out"
grep -q 'digest' "$work/out"
"$work/prefix/bin/rowhouse" status --servers="${line##* }" | tee "$work/status"
grep -q '1 of 1 servers answer' "$work/status"
kill -TERM "$server"
wait "$server"
server=
