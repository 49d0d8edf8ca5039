"""Points never change, arcs cover the ring, and load spreads as it should."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from floe.metadata.ring import Ring, bucket_point, range_point, topic_point
from floe.model.ids import Bucket, RangeId, bucket_at, object_id

POINTS = st.integers(0, 2**64 - 1)


def test_points_are_part_of_the_format():
    assert topic_point("orders") == 0xD5ACEBE867B47F4D
    assert range_point(RangeId(8)) == 0x5692161D100B05E5
    assert bucket_point(Bucket(0b1011)) == 0b1101 << 60


@given(st.integers(1, 300), POINTS)
def test_even_arcs_cover_every_point_once(vnode_count, point):
    owner = Ring.even(vnode_count).owner(point)
    assert (owner << 64) // vnode_count <= point < (owner + 1 << 64) // vnode_count


@given(st.sets(POINTS, max_size=20), POINTS, POINTS)
def test_splitting_a_vnode_moves_only_points_of_its_arc(starts, split, point):
    before = sorted({0, *starts})
    after = sorted({*before, split})
    owner = before[Ring(tuple(before)).owner(point)]
    new_owner = after[Ring(tuple(after)).owner(point)]
    assert new_owner == owner or (new_owner == split and owner == before[Ring(tuple(before)).owner(split)])


def test_names_that_kafka_does_not_tell_apart_share_a_home():
    ring = Ring.even(16)
    assert ring.of_topic("a.b_c") == ring.of_topic("a_b.c")


def test_eight_neighbouring_ranges_share_a_vnode():
    ring = Ring.even(16)
    for first in range(0, 8000, 8):
        assert len({ring.of_range(RangeId(first + i)) for i in range(8)}) == 1


def test_ranges_and_topics_spread_over_all_vnodes():
    ring = Ring.even(16)
    ranges = Counter(ring.of_range(RangeId(i)) for i in range(160_000))
    topics = Counter(ring.of_topic(f"topic-{i}") for i in range(16_000))
    assert len(ranges) == len(topics) == 16
    assert max(ranges.values()) < 11_000
    assert max(topics.values()) < 1_150


def test_consecutive_buckets_rotate_over_all_vnodes():
    for vnode_count in (1, 2, 4, 8, 16, 32):
        ring = Ring.even(vnode_count)
        first = bucket_at(1_750_000_000_000)
        for start in range(first, first + 50):
            turn = [ring.of_bucket(Bucket(start + i)) for i in range(vnode_count)]
            assert sorted(turn) == list(range(vnode_count))


def test_object_lives_where_its_bucket_does():
    ring = Ring.even(16)
    assert ring.of_object(object_id(Bucket(77), 3)) == ring.of_bucket(Bucket(77))
