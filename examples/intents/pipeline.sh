#!/bin/sh
# Shows a channel until it is told to stop: pipeline.sh SERVICE PROFILE SLOT
#
# In place of a tuner this makes test pictures with ffmpeg, or writes a line a second where there is no ffmpeg. What it
# shows goes to the folder EXAMPLE_OUTPUT, if there is one. Tenure ends it with SIGTERM, and whatever it started too.
set -eu

service=$1 profile=$2 slot=$3
shown=/dev/null
if [ -n "${EXAMPLE_OUTPUT:-}" ]; then shown=$EXAMPLE_OUTPUT/tuner-$slot; fi

echo "showing $service ($profile) on tuner $slot, lease $TENURE_LEASE, fence $TENURE_FENCE"

if command -v ffmpeg > /dev/null; then
    # The name of the channel stands in the stream, where players look for it.
    exec ffmpeg -nostdin -loglevel warning -y -re -f lavfi -i "testsrc=size=640x360:rate=25" \
        -metadata service_name="$service" -f mpegts "$shown"
fi

while :; do
    echo "$service ($profile) on tuner $slot" >> "$shown"
    sleep 1
done
