# A pipeline that proves that it is alone: intents_pipeline.sh FOLDER SERVICE SLOT
#
# It holds a lock on its tuner and one on its channel until its last process ends. A pipeline that finds one of
# them locked, or was given a lower fence than the one before, writes that down.
folder=$1 service=$2 slot=$3
complain() { echo "$TENURE_SESSION on tuner $slot with $service: $1" >> "$folder/violations"; }

exec 8>> "$folder/slot-$slot" 9>> "$folder/service-$service"
flock -n 8 || complain "the tuner is in use"
flock -n 9 || complain "the channel is shown already"
last=$(cat "$folder/fence-$slot" 2> /dev/null)
[ "$TENURE_FENCE" -gt "${last:-0}" ] || complain "fence $TENURE_FENCE comes after $last"
echo "$TENURE_FENCE" > "$folder/fence-$slot"
echo "$TENURE_SESSION" >> "$folder/started"

case $service in
    # It ends by itself, and leaves a process behind.
    quits) setsid sleep 600 & exec sleep 0.2 ;;
    fails) sleep 0.1 && exit 3 ;;
    stubborn) trap '' TERM ;;
    strays) setsid sleep 600 & ;;
esac
exec sleep 600
