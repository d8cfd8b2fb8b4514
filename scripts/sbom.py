"""Writes a CycloneDX 1.6 bill of materials of an install, as found in the running environment.

    python scripts/sbom.py sbom.cdx.json [EXTRA...]

Follows the requirements of sar-eval and of the extras named, so tools that only developers install stay out. The same
environment gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sys
import uuid
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "sar-eval"
SPEC_VERSION = "1.6"

Json = dict[str, Any]


def bill(root: str = ROOT, extras: Iterable[str] = ()) -> Json:
    """The bill as a JSON object: every distribution reachable from the root, and who needs whom."""
    seen: dict[str, Distribution] = {}
    edges: dict[str, list[str]] = {}
    waiting = [(canonicalize_name(root), frozenset(extras))]
    while waiting:
        name, extras = waiting.pop()
        found = seen.setdefault(name, distribution(name))
        for needed in requirements(found, extras):
            target = canonicalize_name(needed.name)
            if target not in edges.setdefault(name, []):
                edges[name].append(target)
                waiting.append((target, frozenset(needed.extras)))
    refs = {name: f"pkg:pypi/{name}@{found.version}" for name, found in seen.items()}
    top = canonicalize_name(root)
    components = [component(seen[name], refs[name]) for name in sorted(seen) if name != top]
    body: Json = {
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": {"component": {**component(seen[top], refs[top]), "type": "application"}},
        "components": components,
        "dependencies": [
            {"ref": refs[name], "dependsOn": sorted(refs[t] for t in edges.get(name, []))} for name in sorted(seen)
        ],
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
    return {**body, "serialNumber": f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"}


def requirements(found: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    """What a distribution needs here: markers are judged for this Python and platform."""
    for line in found.requires or []:
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in ("", *extras)):
            yield needed


def component(found: Distribution, ref: str) -> Json:
    entry: Json = {
        "type": "library",
        "bom-ref": ref,
        "name": found.metadata["Name"],
        "version": found.version,
        "purl": ref,
    }
    if summary := field(found, "Summary"):
        entry["description"] = summary
    if expression := field(found, "License-Expression"):
        entry["licenses"] = [{"expression": expression}]
    elif names := license_names(found):
        entry["licenses"] = [{"license": {"name": name}} for name in names]
    return entry


def license_names(found: Distribution) -> list[str]:
    """Licence names from the classifiers, else from the License field unless that holds a whole text."""
    prefix = "License :: "
    classifiers = found.metadata.get_all("Classifier") or []
    names = [c.rpartition(" :: ")[2] for c in classifiers if c.startswith(prefix)]
    plain = field(found, "License")
    return names or ([plain] if plain and "\n" not in plain and len(plain) <= 80 else [])


def field(found: Distribution, key: str) -> str:
    values = found.metadata.get_all(key)
    return str(values[0]) if values else ""


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python scripts/sbom.py FILE [EXTRA...]", file=sys.stderr)
        return 1
    try:
        made = bill(extras=arguments[1:])
    except PackageNotFoundError as error:
        print(f"sbom: {error.name} is not installed in {sys.prefix}: pip install -e . first", file=sys.stderr)
        return 5
    Path(arguments[0]).write_text(json.dumps(made, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{arguments[0]}: {len(made['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
