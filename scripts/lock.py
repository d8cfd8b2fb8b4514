"""Prints what pip installed beside this interpreter as constraints: every version, without what came inside a wheel.

The ROS 2 wheels carry the packages they were made of as distributions of their own, which no index has.
"""

from __future__ import annotations

import importlib.metadata
import json


def installed_by_pip(dist: importlib.metadata.Distribution) -> bool:
    """Whether pip fetched it from an index: not part of another wheel, not editable, not pip itself."""
    installer = (dist.read_text("INSTALLER") or "").strip()
    editable = json.loads(dist.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable", False)
    return installer == "pip" and not editable and dist.name != "pip"


def main() -> None:
    pins = {f"{dist.name}=={dist.version}" for dist in importlib.metadata.distributions() if installed_by_pip(dist)}
    print("\n".join(sorted(pins, key=str.lower)))


if __name__ == "__main__":
    main()
