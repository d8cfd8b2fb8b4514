#!/bin/sh
# evaluate.sh TIER: the median seeds of Stage 1 on a few episodes in that tier, then the report. Again: goes on.
# SAR_EPISODES (0-2), SAR_PATTERN, SAR_WORLD choose; everything is left in /runs/TIER.
set -eu
tier=${1:?give a tier: sih or gazebo}
runs=${SAR_RUNS_DIR:-/runs}
over=${SAR_HANGAR:+$SAR_HANGAR/over}
world=${SAR_WORLD:-village}
stage1=$runs/$tier/stage1-$world.jsonl
campaign=$runs/$tier/campaign-$world

[ -z "$over" ] || rm -f "$over"
flying=
# However it ends, vehicles in the hangar are told; a signal goes on to what flies, so that it ends properly.
trap '[ -z "$over" ] || touch "$over"' EXIT
trap '[ -z "$flying" ] || kill -TERM "$flying" 2>/dev/null' TERM INT

run() {
    "$@" &
    flying=$!
    code=0
    wait "$flying" || code=$?
    # A trapped signal ends wait early: wait on until the process itself has ended.
    while kill -0 "$flying" 2>/dev/null; do
        code=0
        wait "$flying" || code=$?
    done
    flying=
    [ "$code" -eq 0 ] || exit "$code"
}

mkdir -p "$runs/$tier"
[ -s "$stage1" ] || run sar-eval stage1 --world "$world" --out "$stage1"
run sar-eval stage2 --backend "$tier" --stage1 "$stage1" --world "$world" --episodes "${SAR_EPISODES:-0-2}" \
    --pattern "${SAR_PATTERN:-partitioned_lawnmower}" --victims present --workers 1 --bags all --out "$campaign"
run sar-eval report "$campaign" --stage1 "$stage1" --out "$runs/$tier/report"
echo "report: $runs/$tier/report/RESULTS.md"
