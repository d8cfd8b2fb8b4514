#!/bin/sh
# vehicle.sh PX4 INSTANCE: PX4 on order until the evaluation is over. vehicle.sh probe INSTANCE: is it as it should be?
# Orders come in SAR_HANGAR, a folder shared with the evaluator. A PX4 flies only while there is one for it: the file
# vehicle-INSTANCE.order, whose lines become its environment. It is a fresh PX4 every time.
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
over=$hangar/over
ended=$hangar/vehicle-$2.ended
flying=$hangar/vehicle-$2.flying
px4=
trap 'touch "${TMPDIR:-/tmp}/vehicle-$$.stop"; [ -z "$px4" ] || kill -TERM "$px4" 2>/dev/null' TERM INT
stopped() { [ -e "${TMPDIR:-/tmp}/vehicle-$$.stop" ]; }

until [ -e "$over" ] || stopped; do
    if [ ! -e "$order" ]; then
        sleep 0.2
        continue
    fi
    rm -f "$ended"
    place=$(mktemp -d) && cd "$place" || exit 1
    (
        set -a
        . "$order"
        exec "$1" -d -i "$2"
    ) &
    px4=$!
    touch "$flying"
    while [ -e "$order" ] && [ ! -e "$over" ] && kill -0 "$px4" 2>/dev/null; do sleep 0.1; done
    kill -TERM "$px4" 2>/dev/null
    code=0
    wait "$px4" || code=$?
    px4=
    # It ended by itself: the evaluator hears of it, and takes the order back.
    if [ -e "$order" ] && ! stopped; then echo "$code" >"$ended"; fi
    while [ -e "$order" ] && [ ! -e "$over" ] && ! stopped; do sleep 0.1; done
    cd / && rm -rf "$place"
    rm -f "$flying"
done
echo "vehicle $2: the evaluation is over"
