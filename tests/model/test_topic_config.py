"""Topic configs are checked as Kafka checks them, and clear sentences say what is wrong."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected
from floe.model.topic_config import TOPIC_CONFIGS, TopicConfig, check_config, known_key, value_of


def refusal(config):
    with pytest.raises(Rejected) as caught:
        check_config(config)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.message


@pytest.mark.parametrize("key", TOPIC_CONFIGS.values(), ids=TOPIC_CONFIGS)
def test_every_default_passes_its_own_check(key):
    check_config({key.name: key.default})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-1"),
        ("retention.ms", " 604800000 "),
        ("retention.ms", str(2**63 - 1)),
        ("retention.bytes", "0"),
        ("max.message.bytes", "10485760"),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", "compact, delete"),
        ("compression.type", "zstd"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("segment.ms", "100"),
        ("unclean.leader.election.enable", "TRUE"),
    ],
)
def test_legal_value_is_accepted(name, value):
    check_config({name: value})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("retention.ms", "-2", "at least -1"),
        ("retention.ms", "soon", "whole number"),
        ("retention.ms", "", "whole number"),
        ("retention.ms", "1_000", "whole number"),
        ("retention.ms", "\u0661", "whole number"),
        ("retention.ms", str(2**63), "at most"),
        ("max.message.bytes", str(2**31), "at most"),
        ("max.message.bytes", "9" * 10_000, "whole number"),
        ("cleanup.policy", "shred", "one of compact, delete"),
        ("cleanup.policy", "", "one of compact, delete"),
        ("compression.type", "brotli", "one of"),
        ("message.timestamp.type", "BrokerTime", "one of CreateTime"),
        ("min.cleanable.dirty.ratio", "1.5", "at most 1"),
        ("min.cleanable.dirty.ratio", "nan", "number"),
        ("preallocate", "yes", "true or false"),
        ("leader.replication.throttled.replicas", "x" * 40_000, "longer than"),
    ],
)
def test_illegal_value_is_refused_with_a_reason(name, value, reason):
    message = refusal({"retention.bytes": "5", name: value})
    assert name in message
    assert reason in message
    assert len(message) < 400


def test_unknown_key_is_refused_and_the_nearest_known_one_named():
    assert "Did you mean retention.ms?" in refusal({"retention.mss": "1"})
    assert "Did you mean" not in refusal({"qqqq": "1"})
    assert len(refusal({"x" * 100_000: "1"})) < 200


def test_keys_about_kafkas_own_machinery_are_known_but_not_in_effect():
    assert not known_key("segment.bytes").acts_on("1000")
    assert known_key("retention.ms").acts_on("1000")
    assert known_key("compression.type").acts_on("producer")
    assert not known_key("compression.type").acts_on("gzip")


def test_defaults_are_kafkas():
    config = TopicConfig.of({})
    assert config == TopicConfig(604_800_000, -1, 1_048_588, True, False)
    assert value_of({}, "segment.bytes") == "1073741824"


def test_topic_that_only_compacts_drops_nothing_by_age():
    assert not TopicConfig.of({"cleanup.policy": "compact"}).is_deleting
    assert TopicConfig.of({"cleanup.policy": "delete, compact"}).is_deleting


@given(st.dictionaries(st.sampled_from(sorted(TOPIC_CONFIGS)), st.text(max_size=30)))
def test_what_passes_the_check_can_be_read(config):
    with suppress(Rejected):
        check_config(config)
        TopicConfig.of(config)
