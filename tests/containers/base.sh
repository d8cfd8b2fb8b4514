#!/usr/bin/env bash
# base.sh TAG PYTHON: a base image for our Dockerfile out of Debian's packages and PyPI's wheels, under TAG.
#
# It stands in for python:3.11-slim-bookworm where no image can be pulled: Debian 12 with its Python 3.11, and every
# wheel the Dockerfile asks for in a folder that pip is told to look in. So the unmodified Dockerfile builds on it
# without any network. PYTHON is an interpreter with pip.
set -euo pipefail
tag=$1 python=$2
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | head -n 1)
debootstrap --variant=minbase --include=python3,python3-pip,python3-venv,ca-certificates bookworm "$work/root" "$mirror" \
    >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; exit 1; }
rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
# Python 3.11's wheels, whatever Python asks.
"$python" -m pip --disable-pip-version-check --quiet download --only-binary :all: --python-version 3.11 \
    -c "$top/constraints.txt" -d "$work/root/opt/wheelhouse" \
    $("$python" "$top/docker/requirements.py" "$top/pyproject.toml" report cluster px4) 2>&1 | grep -v '^WARNING: Location' >&2 || true
[ -n "$(ls "$work/root/opt/wheelhouse")" ]
tar --create --directory "$work/root" --exclude ./proc --exclude ./sys . |
    docker import --change 'ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/opt/wheelhouse' --change 'CMD ["python3"]' - "$tag"
