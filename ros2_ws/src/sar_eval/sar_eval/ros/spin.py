"""Runs nodes in one process until they are finished.

rclpy's executors build their wait set anew in Python for every message, which costs more than our nodes' own work.
Here the set of subscriptions is fixed, so one wait serves all messages that are there; services, parameters and the
wall clock's housekeeping get their turn a few times a second.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation

from sar_eval.ros.shell import Shell

WAIT_NS = 20_000_000
HOUSEKEEPING_S = 0.1
SERVICES_S = 0.25
EARLY_S = 0.02
"""Between looks for partners before the first tick."""


def spin(shells: Sequence[Shell]) -> None:
    """Serve the nodes until all are finished."""
    executor = SingleThreadedExecutor(context=shells[0].node.context)
    for shell in shells:
        executor.add_node(shell.node)
    readers = {}
    for shell in shells:
        for subscription in shell.node.subscriptions:
            readers[subscription.handle.pointer] = subscription
    waiting = rclpy_implementation.WaitSet(len(readers), 0, 0, 0, 0, 0, shells[0].node.context.handle)
    due_s = services_due_s = 0.0
    while not all(shell.finished for shell in shells):
        waiting.clear_entities()
        for subscription in readers.values():
            waiting.add_subscription(subscription.handle)
        waiting.wait(WAIT_NS)
        for pointer in waiting.get_ready_entities("subscription"):
            drain(readers[pointer])
        now_s = time.monotonic()
        if now_s >= services_due_s:
            executor.spin_once(timeout_sec=0.0)
            services_due_s = now_s + SERVICES_S
        if now_s >= due_s:
            for shell in shells:
                if not shell.finished:
                    shell.housekeeping()
            due_s = time.monotonic() + (HOUSEKEEPING_S if all(shell.ready for shell in shells) else EARLY_S)
    executor.shutdown()


def drain(subscription: Any) -> None:
    """Hand over every message that is there."""
    while (taken := subscription.handle.take_message(subscription.msg_type, subscription.raw)) is not None:
        subscription.callback(taken[0])


def listen_to_signals(shells: Sequence[Shell]) -> None:
    """SIGINT and SIGTERM, once or more often, ask for a proper end."""

    def stop(*_: Any) -> None:
        for shell in shells:
            shell.ask_to_stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
