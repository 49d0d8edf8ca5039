"""Typed calls: values of the model travel unchanged, other bytes are refused with a sentence."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.model.coordinates import RangeView, Row, RowFlags
from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, FloeError, Rejected, Unavailable
from floe.model.topic import Placement, StorageClass, Topic
from floe.model.work import WorkItem, WorkKind
from floe.wire.native.calls import (
    METHODS,
    RANGES_MAX,
    BrokerAddress,
    ClaimWork,
    ClaimWorkReply,
    ClusterInfo,
    ClusterInfoReply,
    DescribeTopics,
    DescribeTopicsReply,
    ErrorReply,
    Find,
    FindItem,
    FindReply,
    FindTimestamp,
    FindTimestampReply,
    FinishWork,
    FinishWorkReply,
    ListOffsets,
    ListOffsetsReply,
    Method,
    RangeEnds,
    decode_call,
    decode_error,
    decode_reply,
    encode_payload,
)
from floe.wire.native.values import RowValue, TopicValue, ViewValue, WorkItemValue

moderate = settings(max_examples=60, deadline=None)
IDS = st.integers(0, 2**63 - 1)
OFFSETS = st.integers(-1, 2**63 - 1)
TIMES = st.integers(-(2**63), 2**63 - 1)
ROWS = st.builds(
    Row,
    IDS,
    OFFSETS,
    OFFSETS,
    st.none() | IDS,
    IDS,
    IDS,
    TIMES,
    TIMES,
    level=st.integers(0, 255),
    flags=st.sampled_from(RowFlags),
)
VIEWS = st.builds(
    RangeView, st.sampled_from(ErrorCode), OFFSETS, OFFSETS, OFFSETS, st.lists(ROWS, max_size=3).map(tuple)
)
TOPICS = st.builds(
    Topic,
    name=st.text(max_size=20),
    id=st.binary(min_size=16, max_size=16),
    ranges=st.lists(IDS, max_size=5).map(tuple),
    storage_class=st.sampled_from(StorageClass),
    placement=st.sampled_from(Placement),
    is_aligned=st.booleans(),
    config=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    version=IDS,
)
OBJECTS = st.lists(IDS, max_size=4).map(tuple)
ITEMS = st.builds(WorkItem, IDS, IDS, st.sampled_from(WorkKind), IDS, TIMES, OBJECTS)


@given(view=VIEWS)
@moderate
def test_views_and_their_rows_come_back(view):
    reply = decode_reply(Method.FIND, encode_payload(FindReply((ViewValue.of(view),))))
    assert [found.value() for found in reply.views] == [view]


@given(topic=TOPICS)
@moderate
def test_topics_come_back(topic):
    reply = decode_reply(Method.DESCRIBE_TOPICS, encode_payload(DescribeTopicsReply((TopicValue.of(topic),))))
    assert [found.value() for found in reply.topics] == [topic]


@given(item=ITEMS)
@moderate
def test_work_comes_back(item):
    reply = decode_reply(Method.CLAIM_WORK, encode_payload(ClaimWorkReply((WorkItemValue.of(item),))))
    assert [found.value() for found in reply.items] == [item]
    call = decode_call(Method.FINISH_WORK, encode_payload(FinishWork(WorkItemValue.of(item), item.objects)))
    assert (call.item.value(), call.done) == (item, item.objects)


REQUESTS = {
    Method.CLUSTER_INFO: ClusterInfo(),
    Method.DESCRIBE_TOPICS: DescribeTopics(("one", "two")),
    Method.FIND: Find((FindItem(1, 2, 3), FindItem(4, 5, 6)), wait_ms=500),
    Method.FIND_TIMESTAMP: FindTimestamp(7, -1),
    Method.LIST_OFFSETS: ListOffsets((1, 2, 3)),
    Method.CLAIM_WORK: ClaimWork("worker", (WorkKind.DELETE, WorkKind.COMPACT), 5),
    Method.FINISH_WORK: FinishWork(WorkItemValue(1, 2, WorkKind.VERIFY, 3, 4, (5,)), (5,)),
}
REPLIES = {
    Method.CLUSTER_INFO: ClusterInfoReply(
        "c", 1, (BrokerAddress(1, "host", 9092, 9093, "zone"),), "s3://bucket"
    ),
    Method.DESCRIBE_TOPICS: DescribeTopicsReply(()),
    Method.FIND: FindReply((ViewValue(0, 0, 10, 10, (RowValue(1, 0, 9, 3, 8, 100, 5, 6),)),)),
    Method.FIND_TIMESTAMP: FindTimestampReply(ViewValue(1)),
    Method.LIST_OFFSETS: ListOffsetsReply((RangeEnds(0, 1, 2, 2), RangeEnds(3))),
    Method.CLAIM_WORK: ClaimWorkReply(()),
    Method.FINISH_WORK: FinishWorkReply(),
}


def test_every_method_has_both_types():
    assert set(METHODS) == set(Method) == set(REQUESTS) == set(REPLIES)


@pytest.mark.parametrize("method", Method)
def test_requests_and_replies_come_back(method):
    assert decode_call(method, encode_payload(REQUESTS[method])) == REQUESTS[method]
    assert decode_reply(method, encode_payload(REPLIES[method])) == REPLIES[method]


@pytest.mark.parametrize("method", Method)
def test_fields_of_a_newer_peer_are_ignored_and_missing_ones_have_defaults(method):
    longer = [*msgspec.msgpack.decode(encode_payload(REQUESTS[method])), "new", {"more": 1}]
    if not isinstance(REQUESTS[method], ClusterInfo | DescribeTopics | Find):
        assert decode_call(method, msgspec.msgpack.encode(longer)) == REQUESTS[method]
    assert decode_call(Method.FIND, msgspec.msgpack.encode([[]])) == Find((), 0)
    assert decode_call(Method.DESCRIBE_TOPICS, msgspec.msgpack.encode([])).names is None


def test_an_unknown_method_is_refused_with_a_sentence():
    with pytest.raises(Rejected, match="method 99 is not known") as caught:
        decode_call(99, b"\x90")
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        (Method.FIND, [[[-1, 0, 0]]]),
        (Method.FIND, [[[1, -2, 0]]]),
        (Method.FIND, [[[1, 2**63, 0]]]),
        (Method.FIND, [[[1, 0, "x"]]]),
        (Method.FIND, [[], -1]),
        (Method.FIND, [[], 2**31]),
        (Method.FIND, [[[1, 1, 1]] * (RANGES_MAX + 1)]),
        (Method.LIST_OFFSETS, [[1] * (RANGES_MAX + 1)]),
        (Method.DESCRIBE_TOPICS, [["x" * 250]]),
        (Method.CLAIM_WORK, ["w", ["delete"], 0]),
        (Method.CLAIM_WORK, ["w", ["explode"], 1]),
        (Method.CLAIM_WORK, ["", ["delete"], 1]),
        (Method.CLAIM_WORK, ["w", [], 1]),
    ],
)
def test_values_out_of_bounds_are_refused_before_a_handler_sees_them(method, fields):
    with pytest.raises(Rejected, match=method.name) as caught:
        decode_call(method, msgspec.msgpack.encode(fields))
    assert caught.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "payload", [b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * 5000, b"\x90\x90", b"\x80"]
)
def test_bytes_that_are_no_payload_are_refused(payload):
    for method in Method:
        for decode in (decode_call, decode_reply):
            try:
                decode(method, payload)
            except (Rejected, Corrupt):
                continue
            raise AssertionError((method, decode))
    with pytest.raises(Corrupt):
        decode_error(payload)


def test_text_that_is_none_is_refused():
    with pytest.raises(Rejected):
        decode_call(Method.DESCRIBE_TOPICS, b"\x91\x91\xa2\xff\xff")


@given(payload=st.binary(max_size=60), method=st.sampled_from(Method))
@settings(max_examples=150, deadline=None)
def test_noise_raises_nothing_unexpected(payload, method):
    for decode in (lambda: decode_call(method, payload), lambda: decode_reply(method, payload)):
        try:
            decode()
        except FloeError:
            continue


def test_errors_carry_code_and_sentence():
    sent = ErrorReply.of(Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic"))
    error = decode_error(encode_payload(sent)).error()
    assert (error.code, str(error)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic")
    assert ErrorReply.of(Unavailable("later")).code == ErrorCode.REQUEST_TIMED_OUT
    assert ErrorReply(12345, "from the future").error().code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_layout_of_a_find_is_as_documented():
    assert encode_payload(Find((FindItem(7, 0, 1000),))).hex(" ") == "92 91 93 07 00 cd 03 e8 00"
