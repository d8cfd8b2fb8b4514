"""Starting points of the nodes: each alone in its process, or several composed in one."""

from __future__ import annotations

import contextlib
import gc
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.signals import SignalHandlerOptions

from sar_core.errors import InputError, RunError, SarError
from sar_eval.bag.encoders import load_codecs
from sar_eval.episode.kernels import compile_kernels
from sar_eval.ros.csi import CsiNode
from sar_eval.ros.manager import ManagerNode
from sar_eval.ros.nodetable import NODES
from sar_eval.ros.recorder import RecorderNode
from sar_eval.ros.referee import RefereeNode
from sar_eval.ros.shell import Shell
from sar_eval.ros.sim import SimNode
from sar_eval.ros.spin import listen_to_signals, spin
from sar_eval.ros.swarm import SwarmNode
from sar_eval.start import interrupt

COMPUTING = {"sim", "csi", "swarm", "referee"}
"""Nodes that need compiled kernels before their first tick."""
_MAKERS: dict[str, Callable[..., Shell]] = {
    "sim": SimNode,
    "csi": CsiNode,
    "swarm": SwarmNode,
    "referee": RefereeNode,
    "recorder": RecorderNode,
    "manager": ManagerNode,
}


def run_nodes(
    names: Sequence[str], given: Mapping[str, Mapping[str, Any]] | None = None, arguments: Sequence[str] = ()
) -> int:
    """Run nodes in this process to the end of their episode; the exit code."""
    rclpy.init(args=list(arguments), signal_handler_options=SignalHandlerOptions.NO)
    shells: list[Shell] = []
    try:
        for name in names:
            shells.append(_MAKERS[name]((given or {}).get(name)))
        if set(names) & COMPUTING:
            compile_kernels(shells[0].episode)
        load_codecs()
        listen_to_signals(shells)
        if interrupt.heard:  # somewhere that swallowed it
            return RunError.exit_code
        gc.freeze()
        spin(shells)
        manager = next((shell for shell in shells if isinstance(shell, ManagerNode)), None)
        if manager is None or manager.record is None:
            return 0
        if not manager.values["record_file"]:
            print(json.dumps(manager.record.as_dict()), flush=True)
        return 0 if manager.record.result["valid"] else RunError.exit_code
    except KeyboardInterrupt:
        return RunError.exit_code
    except (SarError, ParameterException) as error:
        print(f"{', '.join(names)}: {error}", file=sys.stderr, flush=True)
        return error.exit_code if isinstance(error, SarError) else InputError.exit_code
    except Exception:
        if not interrupt.heard:  # of which rclpy makes other errors
            raise
        return RunError.exit_code
    finally:
        for shell in shells:
            with contextlib.suppress(Exception):
                shell.destroy()
        rclpy.try_shutdown()


def main(arguments: Sequence[str]) -> int:
    """NODE... and then what ROS takes, from --ros-args on."""
    at = next((i for i, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    names = list(arguments[:at])
    unknown = [name for name in names if name not in NODES]
    if unknown or not names:
        raise InputError(f"nodes = {' '.join(names) or 'none'}: allowed are {', '.join(NODES)}")
    return run_nodes(names, None, arguments[at:])


def _alone(name: str) -> int:
    return run_nodes([name], None, sys.argv[1:])


def sim() -> int:
    return _alone("sim")


def px4_bridge() -> int:
    """The world's part where real autopilots fly."""
    return _alone("sim")


def csi() -> int:
    return _alone("csi")


def swarm() -> int:
    return _alone("swarm")


def referee() -> int:
    return _alone("referee")


def recorder() -> int:
    return _alone("recorder")


def manager() -> int:
    return _alone("manager")


def composed() -> int:
    """All nodes in one process."""
    return run_nodes(NODES, None, sys.argv[1:])
