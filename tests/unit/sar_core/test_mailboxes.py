"""What a drone holds of the others is what the air delivered to it, and never older than what it held before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.mailboxes import FAILSAFE, LEG, SLOTS, STAMP, Delivered, Mailboxes

DRONES = 3
NOBODY = np.zeros(DRONES, dtype=np.bool_)


def tick(boxes: Mailboxes, now: int, rows: list[tuple[int, int, int]], frozen: tuple[int, ...] = ()) -> None:
    """Everyone packs where it stands at x = now, and a letter that says when and from whom."""
    place = np.full((DRONES, 3), float(now))
    asleep = NOBODY.copy()
    asleep[list(frozen)] = True
    status = np.array([[drone, now] for drone in range(DRONES)], dtype=np.float64)
    mail = [[(now, drone)] for drone in range(DRONES)]
    air = Delivered(now % SLOTS, np.array(rows, dtype=np.int64).reshape(-1, 3), asleep)
    boxes.exchange(float(now), air, place, place, status, mail)


def test_a_packet_reaches_its_receiver_and_nobody_else() -> None:
    boxes = Mailboxes(DRONES)
    tick(boxes, 5, [(5, 0, 2)])
    row = boxes.others(0)[2]
    assert row[:6].tolist() == [5.0] * 6
    assert (row[STAMP], row[FAILSAFE], row[LEG]) == (5.0, 2.0, 5.0)
    assert np.isnan(boxes.others(0)[:2]).all() and np.isnan(boxes.others(1)).all()
    assert boxes.inbox == [[(5, 2)], [], []]
    assert boxes.heard_s[0] == 5.0 and np.isnan(boxes.heard_s[1:]).all()


def test_a_packet_that_was_overtaken_changes_no_state_but_its_mail_arrives() -> None:
    boxes = Mailboxes(DRONES)
    tick(boxes, 1, [])
    tick(boxes, 2, [(2, 0, 1)])
    tick(boxes, 3, [(1, 0, 1)])
    assert boxes.known[0, 1, STAMP] == 2.0
    assert boxes.inbox[0] == [(1, 1)]
    assert boxes.heard_s[0] == 3.0, "it was heard all the same"


def test_who_is_frozen_sends_its_last_packet_without_its_mail() -> None:
    boxes = Mailboxes(DRONES)
    tick(boxes, 1, [])
    tick(boxes, 2, [(2, 0, 1), (2, 0, 2)], frozen=(1,))
    assert boxes.known[0, 1, STAMP] == 1.0 and boxes.known[0, 2, STAMP] == 2.0
    assert boxes.inbox[0] == [(2, 2)]


def test_who_is_frozen_before_it_ever_sent_says_what_is() -> None:
    boxes = Mailboxes(DRONES)
    tick(boxes, 1, [(1, 0, 1)], frozen=(1,))
    assert boxes.known[0, 1, STAMP] == 1.0 and boxes.inbox[0] == [(1, 1)]


def test_what_is_handed_out_is_ones_own() -> None:
    boxes = Mailboxes(DRONES)
    tick(boxes, 1, [(1, 0, 1)])
    boxes.others(0)[:] = -1.0
    assert boxes.known[0, 1, STAMP] == 1.0


def test_the_oldest_news_is_what_counts_and_none_is_no_age() -> None:
    boxes = Mailboxes(DRONES)
    tick(boxes, 1, [(1, 0, 1)])
    tick(boxes, 4, [(4, 0, 2), (4, 1, 0)])
    ages = boxes.oldest_news_s(6.0)
    assert ages[:2].tolist() == [5.0, 2.0] and math.isnan(ages[2])


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 2)), max_size=6),
        min_size=1,
        max_size=12,
    )
)
def test_each_holds_the_newest_of_all_that_came(schedule: list[list[tuple[int, int, int]]]) -> None:
    """Rows are how many ticks ago it was sent, to whom and by whom."""
    boxes = Mailboxes(DRONES)
    newest = np.full((DRONES, DRONES), -np.inf)
    for now, rows in enumerate(schedule):
        due = [(now - ago, to, sender) for ago, to, sender in rows if ago <= now and to != sender]
        tick(boxes, now, due)
        for sent, to, sender in due:
            newest[to, sender] = max(newest[to, sender], sent)
    assert np.where(np.isnan(boxes.known[:, :, STAMP]), -np.inf, boxes.known[:, :, STAMP]) == pytest.approx(newest)
