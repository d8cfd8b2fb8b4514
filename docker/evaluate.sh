#!/bin/sh
# evaluate.sh PROFILE: what a profile of compose.yaml does, from its first line to its report. Given again it goes on.
# PROFILE: embedded, sih, gazebo or cluster. docs/containers.md has the variables; all is left in runs/PROFILE.
set -eu
profile=${1:?give a profile: embedded, sih, gazebo or cluster}
tier=embedded
[ "$profile" != sih ] || tier=${SAR_TIER:-sih}
[ "$profile" != gazebo ] || tier=gazebo
place=runs/$profile
outside=${SAR_RUNS:-./runs}
world=${SAR_WORLD:-village}
alive=${SAR_HANGAR:+$SAR_HANGAR/alive}
flag=
[ "$profile" = sih ] || flag=" --profile $profile"
case $profile in
cluster) SAR_COMMAND="docker compose$flag run --rm cluster" ;;
*) SAR_COMMAND="docker compose$flag up" ;;
esac
export SAR_COMMAND

say() { echo "sar-eval: $*"; }

# What must be right before anything is started.
if ! { mkdir -p "$place" && touch "$place/.probe" && rm "$place/.probe"; } 2>/dev/null; then
    me=$(id -u) owner=$(stat -c %u runs)
    hint="sudo chown $me $outside"
    [ "$owner" = 0 ] || hint="SAR_UID=\$(id -u) SAR_GID=\$(id -g) $SAR_COMMAND, or: $hint"
    say "$outside belongs to user $owner and cannot be written by user $me, who runs in here. Give: $hint" >&2
    exit 1
fi
if [ -n "$alive" ] && ! touch "$alive"; then
    say "user $(id -u) cannot write the folder of signals to the vehicles: docker compose --profile '*' down -v" >&2
    exit 1
fi

flying=
beating=
stopped=
# Begun before the traps, and without our output: whoever reads that waits until nobody holds it any more. It writes
# itself, for a `touch` of its own would outlive it and could bring the file back.
if [ -n "$alive" ]; then
    while kill -0 $$ 2>/dev/null && : >"$alive"; do sleep 1; done >/dev/null 2>&1 &
    beating=$!
fi
trap 'stopped=yes; [ -z "$flying" ] || kill -TERM "$flying" 2>/dev/null' TERM INT
# However it ends, vehicles in other containers leave when this file is gone or no longer touched.
over() {
    [ -z "$beating" ] || { kill "$beating" && wait "$beating"; } 2>/dev/null || true
    [ -z "$alive" ] || { rm -f "$alive" && touch "$SAR_HANGAR/over"; }
}
trap over EXIT

# A signal goes on to what runs, so that it ends properly; nothing is begun after it.
run() {
    [ -z "$stopped" ] || exit 3
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

case $profile in
sih) what="real PX4 in its own simulator, one container per vehicle (${PX4_IMAGE:-PX4_IMAGE is not said})" ;;
gazebo) what="real PX4 in Gazebo, all in this container" ;;
cluster) what="the embedded simulator on the workers of a dask scheduler" ;;
*) what="the embedded simulator" ;;
esac
[ "$tier" != sitl ] || what="our own vehicle behind MAVLink, which is no PX4"
seeds="Stage 1, its three median seeds, their"
[ "$profile" = embedded ] || [ -z "${SAR_SEEDS:-}" ] || seeds="seeds $SAR_SEEDS, their"
say "$seeds Stage-2 missions on $what, then the report"
say "everything is left in $outside/$profile; stopped or killed, the same command goes on: $SAR_COMMAND"

run sar-eval compile
if [ "$profile" = embedded ]; then
    set -- sar-eval eval --out "$place/evaluation"
    [ -z "${SAR_EPISODES:-}" ] || set -- "$@" --episodes "$SAR_EPISODES"
    [ -z "${SAR_PATTERN:-}" ] || set -- "$@" --pattern "$SAR_PATTERN"
    [ -z "${SAR_DURATION_S:-}" ] || set -- "$@" --duration-s "$SAR_DURATION_S"
    run "$@"
    exit 0
fi

stage1=$place/stage1-$world.jsonl
campaign=$place/campaign-$world
set -- --backend "$tier" --world "$world" --episodes "${SAR_EPISODES:-0-1}" \
    --pattern "${SAR_PATTERN:-partitioned_lawnmower}" --out "$campaign"
case $profile in
cluster) set -- "$@" --cluster "${SAR_PROTOCOL:-tcp}://scheduler:8786" --bags events --victims "${SAR_VICTIMS:-both}" ;;
*) set -- "$@" --sim-speed "${SAR_SIM_SPEED:-1}" --bags all --victims "${SAR_VICTIMS:-present}" --refly-invalid ;;
esac
[ -z "${SAR_DURATION_S:-}" ] || set -- "$@" --duration-s "$SAR_DURATION_S"
if [ -n "${SAR_SEEDS:-}" ]; then
    run sar-eval stage2 --seeds "$SAR_SEEDS" "$@"
    run sar-eval report "$campaign" --out "$place/report"
else
    [ -s "$stage1" ] || run sar-eval stage1 --world "$world" --out "$stage1"
    run sar-eval stage2 --stage1 "$stage1" "$@"
    run sar-eval report "$campaign" --stage1 "$stage1" --out "$place/report"
fi
say "read $outside/$profile/report/RESULTS.md, look at $outside/$profile/report/report.html"
