"""Verbs about our messages as ROS 2 types."""

from __future__ import annotations

from typing import Annotated

import typer

from sar_eval.cli.console import err, out

msgs_app = typer.Typer(no_args_is_help=True, help="Messages: our ROS 2 types, built for this environment.")


@msgs_app.callback()
def _group() -> None:
    """Keeps `build` a verb of its own while it is the only one."""


@msgs_app.command("build")
def build(force: Annotated[bool, typer.Option(help="Build even if nothing changed.")] = False) -> None:
    """Build sar_msgs against the ROS 2 wheels of this environment and install it there; about a minute, once.

    On a ROS 2 installation `colcon build` in ros2_ws does it instead.

    Example: pip install 'sar-eval[ros]' && sar-eval msgs build
    """
    from sar_eval.ros.interfaces import build_messages

    with err.status("building sar_msgs (about a minute)"):
        built = build_messages(force=force)
    out.print("sar_msgs built and installed" if built else "sar_msgs is up to date")
