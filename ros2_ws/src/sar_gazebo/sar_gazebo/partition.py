"""Who hears whom on Gazebo's transport. Unless told otherwise, an evaluation keeps to itself and to this machine."""

from __future__ import annotations

import os

PARTITION = {"GZ_PARTITION": "sar_eval", "GZ_IP": "127.0.0.1"}
"""By default the transport parts users from one another, and PX4 may be started as another one."""


def join() -> None:
    """Before the first node of a process; what the user has set stays."""
    for name, value in PARTITION.items():
        os.environ.setdefault(name, value)
