"""The frames on /tf are the poses that the odometry in the bag has."""

from __future__ import annotations

from sar_sim.vehicle.fleet import stamp_ns


def test_every_drone_has_the_frame_of_its_odometry(plan, alone, read_bag):
    from sar_eval.backends.embedded import Simulator
    from sar_eval.ros.transforms import transforms_of

    episode = plan(seed=0)
    first = Simulator(episode).first()
    frames = transforms_of(first.tick, first.state)
    assert len(frames) == episode.scenario.drones
    _, bag = alone(episode)
    for i, frame in enumerate(frames, start=1):
        told = read_bag(bag).topic(f"/uav_{i}/odometry")[0]
        assert told.log_time == stamp_ns(first.tick)
        assert (frame.header.frame_id, frame.child_frame_id) == (
            told.decoded.header.frame_id,
            told.decoded.child_frame_id,
        )
        place, turn = told.decoded.pose.pose.position, told.decoded.pose.pose.orientation
        moved, turned = frame.transform.translation, frame.transform.rotation
        assert (moved.x, moved.y, moved.z) == (place.x, place.y, place.z)
        assert (turned.x, turned.y, turned.z, turned.w) == (turn.x, turn.y, turn.z, turn.w)
