"""Key-space arithmetic, against the partitioners of two Kafka clients."""

import warnings

import pytest
from aiokafka.partitioner import DefaultPartitioner as AiokafkaPartitioner
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.model.key_space import is_doubling, key_hash, murmur2, odd_part, slice_of

with warnings.catch_warnings():  # kafka-python uses what the standard library has deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner import murmur2 as kafka_python_murmur2

KEYS = st.binary(max_size=64)
COUNTS = st.integers(1, 5000)
HASHES = st.integers(0, 0x7FFFFFFF)
ODD = st.integers(0, 50).map(lambda n: 2 * n + 1)
DEPTHS = st.integers(0, 6)
moderate = settings(max_examples=100, deadline=None)


@moderate
@given(key=KEYS)
def test_murmur2_is_the_clients(key):
    assert murmur2(key) == kafka_python_murmur2(key) & 0xFFFFFFFF
    assert murmur2(key) == aiokafka_murmur2(key) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
    ],
)
def test_murmur2_gives_the_values_of_kafkas_own_tests(key, expected):
    assert murmur2(key) == expected & 0xFFFFFFFF


@moderate
@given(key=KEYS, partitions=COUNTS)
def test_a_key_lies_in_the_slice_of_the_partition_that_a_client_chooses(key, partitions):
    chosen = AiokafkaPartitioner()(key, list(range(partitions)), list(range(partitions)))
    assert slice_of(chosen, partitions).holds(key_hash(key))


@moderate
@given(hash_=HASHES, partitions=st.integers(1, 200))
def test_slices_cover_every_hash_exactly_once(hash_, partitions):
    holders = [p for p in range(partitions) if slice_of(p, partitions).holds(hash_)]
    assert holders == [hash_ % partitions]


@moderate
@given(partitions=COUNTS)
def test_odd_part_gives_the_count_back(partitions):
    roots, depth = odd_part(partitions)
    assert roots % 2 == 1
    assert roots << depth == partitions


@moderate
@given(partitions=COUNTS, data=st.data())
def test_a_slice_knows_its_partition(partitions, data):
    partition = data.draw(st.integers(0, partitions - 1))
    assert slice_of(partition, partitions).partition == partition


@moderate
@given(hash_=HASHES, partitions=COUNTS, data=st.data())
def test_doubling_splits_each_slice_into_its_own_half_and_a_new_one(hash_, partitions, data):
    partition = data.draw(st.integers(0, partitions - 1))
    old = slice_of(partition, partitions)
    kept, added = old.halves()
    assert kept == slice_of(partition, 2 * partitions)
    assert added == slice_of(partition + partitions, 2 * partitions)
    assert old.holds(hash_) == (kept.holds(hash_) or added.holds(hash_))
    assert not (kept.holds(hash_) and added.holds(hash_))


@moderate
@given(hash_=HASHES, odd=ODD, fewer=DEPTHS, more=DEPTHS)
def test_topics_with_the_same_odd_part_align(hash_, odd, fewer, more):
    small, large = odd << min(fewer, more), odd << max(fewer, more)
    assert slice_of(hash_ % large, large).holds(hash_)
    assert (hash_ % large) % small == hash_ % small


@moderate
@given(old=COUNTS, new=COUNTS)
def test_doubling_means_a_power_of_two_times_as_many(old, new):
    assert is_doubling(old, new) == (new in {old << k for k in range(1, 14)})


@moderate
@given(partitions=COUNTS, steps=st.integers(1, 4))
def test_growing_by_doubling_is_recognised(partitions, steps):
    assert is_doubling(partitions, partitions << steps)
    assert not is_doubling(partitions, partitions)
    assert not is_doubling(partitions << steps, partitions)
