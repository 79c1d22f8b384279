#!/bin/sh
# Two tuners and three channels: starts a server in a temporary folder, and shows what becomes of each wish.
#
#   cargo build --release && TENURE=$PWD/target/release/tenure examples/intents/run.sh
#
# TENURE names the program; without it, `tenure` is looked for in PATH. Nothing is left behind.
set -eu
cd "$(dirname "$0")"
tenure=${TENURE:-tenure}

work=$(mktemp -d)
# Commands find the server by its socket in this folder, and no other server; and nothing is written anywhere else.
export XDG_RUNTIME_DIR="$work" XDG_STATE_HOME="$work"
unset TENURE_URL TENURE_TOKEN TENURE_SOCKET || :

# So that the same wish is the same session also after a restart. Keep yours where secrets are kept.
TENURE_IDEM_SECRET=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export TENURE_IDEM_SECRET

# There before anybody looks into it: on a busy machine the shell below is slower than the one that goes on.
: > "$work/said"
EXAMPLE_OUTPUT="$work" "$tenure" serve --config config.toml --data "$work/data" --listen 127.0.0.1:0 \
    > "$work/said" 2> "$work/complained" &
server=$!

clean_up() {
    kill "$server" 2> /dev/null || :
    wait "$server" || :
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

fail() {
    echo "this was not to be expected: $1" >&2
    cat "$work/said" "$work/complained" >&2
    exit 1
}

echo "# The server is started."
while ! grep -qs 'local socket' "$work/said"; do
    kill -0 "$server" 2> /dev/null || fail "the server ended"
    sleep 0.1
done

# Which session a channel became; it ends with 1 if it does not run.
start() {
    "$tenure" session start --service "$1" --profile hd --wait --json > "$work/answer" || return 1
}
id() { sed -n 's/.*"session_id":"\([^"]*\)".*/\1/p' "$work/answer"; }

echo "# Two channels, one for each tuner."
start 1:0:19:283D:3FB:1:C00000:0:0:0: || fail "the first channel does not run"
first=$(id)
start 1:0:19:2B66:3F3:1:C00000:0:0:0: || fail "the second channel does not run"

echo "# The first once more: it is the same session."
start 1:0:19:283D:3FB:1:C00000:0:0:0: || fail "the first channel does not run any more"
[ "$(id)" = "$first" ] || fail "it became another session"

echo "# A third channel: there is no tuner left for it."
if start 1:0:19:EF10:421:1:C00000:0:0:0:; then fail "the third channel runs"; fi
grep -q REJECTED_NO_TUNER "$work/answer" || fail "it was refused for another reason"
"$tenure" session list

echo "# The first is stopped, and the third can have its tuner."
"$tenure" session stop "$first" --wait > "$work/answer"
grep -q R_STOPPED "$work/answer" || fail "it was not stopped"
start 1:0:19:EF10:421:1:C00000:0:0:0: || fail "the third channel still does not run"
"$tenure" session list

echo "# What was shown:"
for shown in "$work"/tuner-*; do
    ls "$shown" > /dev/null || fail "nothing was shown"
    echo "${shown##*/}: $(wc -c < "$shown") bytes"
done
