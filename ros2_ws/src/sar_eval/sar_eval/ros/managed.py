"""A managed node whose stages follow the episode, for people and tools that look at them."""

from __future__ import annotations

from typing import Any

from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn


class ManagedNode(LifecycleNode):  # type: ignore[misc]
    """Inactive once its topics are there, active from its first tick to its last.

    Others may ask for its state but not change it: a lockstep knows no pause, and a node that left would spoil the
    episode.
    """

    _moves_itself = False

    def move(self, transition: str) -> None:
        """Go through configure, activate or deactivate."""
        self._moves_itself = True
        try:
            getattr(self, f"trigger_{transition}")()
        finally:
            self._moves_itself = False

    def _judge(self, _: Any) -> Any:
        return TransitionCallbackReturn.SUCCESS if self._moves_itself else TransitionCallbackReturn.FAILURE

    on_configure = on_activate = on_deactivate = on_cleanup = on_shutdown = _judge
