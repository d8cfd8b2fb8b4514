#!/bin/sh
# vehicle.sh PX4 INSTANCE: one PX4 until the evaluation is over. vehicle.sh probe INSTANCE: is its MAVLink port open?
# Mounted into PX4's own images, which have nothing of ours.
set -u
if [ "$1" = probe ]; then
    # PX4 listens for offboard control on 14580 + instance.
    exec grep -q "$(printf ':%04X ' $((14580 + $2)))" /proc/net/udp
fi
over=${SAR_OVER:-/run/sar/over}
"$1" -d -i "$2" &
px4=$!
trap 'kill -TERM "$px4" 2>/dev/null' TERM INT
while kill -0 "$px4" 2>/dev/null; do
    if [ -e "$over" ]; then
        echo "vehicle $2: the evaluation is over"
        kill -TERM "$px4"
        wait "$px4"
        exit 0
    fi
    sleep 1
done
wait "$px4"
