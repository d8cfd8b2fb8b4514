#!/bin/bash
# play.sh: plays the bag SAR_BAG (a folder below runs), or the newest one, over and over, with its clock.
set -euo pipefail
runs=${SAR_RUNS_DIR:-/sar-eval/runs}
if [ -n "${SAR_BAG:-}" ]; then
    bag=$runs/$SAR_BAG
else
    newest=$(find "$runs" -name metadata.yaml -not -path '*.partial/*' -printf '%T@ %h\n' | sort -n | tail -n 1)
    bag=${newest#* }
fi
if [ -z "$bag" ] || [ ! -f "$bag/metadata.yaml" ]; then
    echo "play: no bag below $runs: fly first (docker compose --profile embedded up), or set SAR_BAG" >&2
    exit 4
fi
echo "play: $bag"
exec ros2 bag play --loop --clock 100 "$bag"
