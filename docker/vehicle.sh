#!/bin/sh
# vehicle.sh PX4 INSTANCE: PX4 on order while an evaluation lives. vehicle.sh probe INSTANCE: is it as it should be?
# Orders come in SAR_HANGAR, a folder shared with the evaluator. A PX4 flies only while there is one for it: the file
# vehicle-INSTANCE.order, whose lines become its environment. It is a fresh PX4 in a fresh folder every time.
# The evaluator touches the file alive every second, and over at its end: when alive is gone, or old, the vehicle leaves.
# Mounted into PX4's own image, which has nothing of ours.
set -u
hangar=${SAR_HANGAR:?give the folder in which orders come}
order=$hangar/vehicle-$2.order
if [ "$1" = probe ]; then
    # A vehicle without an order stands in the hangar, and that is well.
    [ -e "$order" ] || exit 0
    # PX4 listens for offboard control on 14580 + instance.
    exec grep -q "$(printf ':%04X ' $((14580 + $2)))" /proc/net/udp
fi
etc=$(dirname "$(dirname "$1")")/etc
ended=$hangar/vehicle-$2.ended
flying=$hangar/vehicle-$2.flying
patience=${SAR_PATIENCE_S:-300}
stop=${TMPDIR:-/tmp}/vehicle-$$.stop
px4=
trap 'touch "$stop"' TERM INT
stopped() { [ -e "$stop" ]; }
# Ten seconds without a beat: who is that silent was killed.
alive() {
    seen=$(stat -c %Y "$hangar/alive" 2>/dev/null) && [ $(($(date +%s) - seen)) -le 10 ] && ! stopped
}

since=$(date +%s)
until alive || stopped; do
    # One that came and went before anyone looked.
    if [ "$(stat -c %Y "$hangar/over" 2>/dev/null || echo 0)" -gt "$since" ]; then
        echo "vehicle $2: the evaluation is over"
        exit 0
    fi
    if [ $(($(date +%s) - since)) -gt "$patience" ]; then
        echo "vehicle $2: no evaluation came within $patience s"
        exit 1
    fi
    sleep 0.2
done
echo "vehicle $2: waits for orders"
while alive; do
    if [ ! -e "$order" ]; then
        sleep 0.2
        continue
    fi
    rm -f "$ended"
    place=$(mktemp -d) && cd "$place" || exit 1
    (
        trap - TERM INT
        set -a
        . "$order"
        exec "$1" -d -i "$2" -w "$place" "$etc"
    ) &
    px4=$!
    touch "$flying"
    while [ -e "$order" ] && alive && kill -0 "$px4" 2>/dev/null; do sleep 0.1; done
    by_itself=yes
    if kill -TERM "$px4" 2>/dev/null; then
        by_itself=
        # Three seconds to leave, then it is made to.
        for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
            kill -0 "$px4" 2>/dev/null || break
            sleep 0.2
        done
        kill -KILL "$px4" 2>/dev/null
    fi
    code=0
    wait "$px4" || code=$?
    # It ended by itself: the evaluator hears of it, and takes the order back.
    if [ -n "$by_itself" ] && [ -e "$order" ] && ! stopped; then echo "$code" >"$ended"; fi
    while [ -e "$order" ] && alive; do sleep 0.1; done
    cd / && rm -rf "$place"
    rm -f "$flying"
done
rm -f "$stop"
echo "vehicle $2: the evaluation is over"
