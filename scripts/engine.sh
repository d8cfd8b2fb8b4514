#!/usr/bin/env bash
# A container engine with Compose for tests/containers, on a Debian machine that has none. Needs root.
#
#     eval "$(scripts/engine.sh start FOLDER)"    # says what it does on stderr, prints the variables that name the engine
#     scripts/engine.sh stop FOLDER               # ends the engine that was started; images stay in FOLDER
#
# Where `docker info` and `docker compose version` answer already, nothing is installed and nothing started.
set -euo pipefail

COMPOSE_SUITE=trixie
# Debian 12's docker-compose is too old for us; the next release's is one static program.

say() { echo "engine: $*" >&2; }

packages() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=120 install --yes --quiet --no-install-recommends "$@" >/dev/null 2>&1 || {
        apt-get update --quiet >/dev/null
        apt-get -o DPkg::Lock::Timeout=120 install --yes --quiet --no-install-recommends "$@" >/dev/null
    }
}

# compose FOLDER: Compose as a plugin below FOLDER/config, from the machine's own package sources, of a later release.
compose() {
    local folder=$1 sources uri
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/config/cli-plugins"
    sources=$folder/apt/sources.list
    uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | head -n 1)
    [ -n "$uri" ] || { say "this machine's apt has no package sources"; return 1; }
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $COMPOSE_SUITE main" >"$sources"
    local apt=(apt-get --quiet -o "Dir::Etc::sourcelist=$sources" -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root
        -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache")
    "${apt[@]}" update >/dev/null
    (cd "$folder/apt" && "${apt[@]}" download docker-compose >/dev/null && dpkg-deb -x docker-compose_*.deb package)
    cp "$folder"/apt/package/usr/libexec/docker/cli-plugins/docker-compose "$folder/config/cli-plugins/"
}

start() {
    local folder=$1
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    if ! docker info >/dev/null 2>&1; then
        if ! command -v dockerd >/dev/null; then
            say "installing docker.io"
            packages docker.io iptables
        fi
        export DOCKER_HOST=unix://$folder/docker.sock
        if ! docker info >/dev/null 2>&1; then
            say "starting dockerd in $folder"
            setsid dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" \
                --host "$DOCKER_HOST" >"$folder/log" 2>&1 </dev/null &
            for _ in $(seq 60); do
                docker info >/dev/null 2>&1 && break
                sleep 0.5
            done
            docker info >/dev/null 2>&1 || { say "dockerd does not answer: $(tail -n 1 "$folder/log")"; return 1; }
        fi
        echo "export DOCKER_HOST=$DOCKER_HOST"
    fi
    if ! docker compose version >/dev/null 2>&1; then
        if ! DOCKER_CONFIG=$folder/config docker compose version >/dev/null 2>&1; then
            say "getting Compose of Debian's $COMPOSE_SUITE"
            compose "$folder"
        fi
        echo "export DOCKER_CONFIG=$folder/config"
    fi
    command -v debootstrap >/dev/null || packages debootstrap
    say "$(docker version --format 'engine {{.Server.Version}}'), $(DOCKER_CONFIG=${DOCKER_CONFIG:-$folder/config} docker compose version)"
}

stop() {
    if [ -s "$1/pid" ]; then kill "$(cat "$1/pid")" 2>/dev/null || true; fi
}

case ${1:-} in
start | stop) "$1" "${2:?give a folder}" ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 1 ;;
esac
