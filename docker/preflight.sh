#!/bin/sh
# preflight.sh TIER: can this sar-eval fly Stage 2 on that tier? Flies nothing. Exit 5 says what is missing.
set -u
tier=${1:?give a tier: sih or gazebo}
asked="sar-eval stage2 --backend $tier --seeds 1 --episodes 0 --out /tmp/preflight --dry-run"
if said=$($asked 2>&1); then
    echo "preflight: sar-eval flies the $tier tier"
    exit 0
fi
cat >&2 <<END
preflight: this sar-eval cannot fly the $tier tier, so no vehicle was started.
preflight: asked: $asked
preflight: it said: $(echo "$said" | tail -n 1)
preflight: what it can fly in containers: docker compose --profile embedded up
END
exit 5
