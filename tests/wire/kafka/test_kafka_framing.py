"""Frames, headers and the negotiation of versions."""

import struct

import pytest

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected
from floe.wire.kafka.apis import API, SERVED, ApiKey
from floe.wire.kafka.framing import (
    RequestHeader,
    frame,
    read_header,
    read_response_header,
    request_frame,
    response_frame,
    write_request_header,
    write_response_header,
)
from floe.wire.kafka.messages import (
    ApiVersion,
    ApiVersionsResponse,
    FetchableTopicResponse,
    FetchResponse,
    MetadataRequest,
    PartitionData,
    Records,
    api_versions_answer,
    decode_request,
    decode_response,
    encode_response,
)

EVERY_VERSION = [
    pytest.param(spec, version, id=f"{spec.name}-v{version}")
    for spec in API.values()
    for version in range(spec.min_version, spec.max_version + 1)
]


@pytest.mark.parametrize("client_id", [None, "", "client", "клиент"])
@pytest.mark.parametrize("version", [8, 9])
def test_request_header_comes_back(version: int, client_id: str | None) -> None:
    head = write_request_header(API[ApiKey.METADATA], version, -7, client_id)
    header, position = read_header(memoryview(head + b"body"))
    assert header == RequestHeader(ApiKey.METADATA, version, -7, client_id)
    assert position == len(head)


def test_header_of_a_flexible_request_has_a_tagged_section() -> None:
    plain = write_request_header(API[ApiKey.METADATA], 8, 1, "c")
    flexible = write_request_header(API[ApiKey.METADATA], 9, 1, "c")
    assert plain == struct.pack(">hhih1s", 3, 8, 1, 1, b"c")
    assert flexible == struct.pack(">hhih1sB", 3, 9, 1, 1, b"c", 0)


def test_unknown_tags_in_a_request_header_are_skipped() -> None:
    head = struct.pack(">hhihB", 3, 9, 5, -1, 2) + b"\x07\x03abc" + b"\x64\x00"
    header, position = read_header(memoryview(head + b"body"))
    assert header.correlation_id == 5
    assert position == len(head)


def test_header_of_an_unknown_api_is_read_so_that_it_can_be_answered() -> None:
    header, position = read_header(memoryview(struct.pack(">hhih", 999, 3, 42, -1)))
    assert header == RequestHeader(999, 3, 42, None)
    assert position == 10


@pytest.mark.parametrize("length", range(12))
def test_truncated_header_is_refused(length: int) -> None:
    head = write_request_header(API[ApiKey.METADATA], 9, 1, "c")
    assert len(head) == 12
    with pytest.raises(Rejected) as refused:
        read_header(memoryview(head[:length]))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_client_id_that_is_not_text_is_refused() -> None:
    with pytest.raises(Rejected):
        read_header(memoryview(struct.pack(">hhih2s", 3, 1, 1, 2, b"\xc3\x28")))


@pytest.mark.parametrize(("spec", "version"), EVERY_VERSION)
def test_response_header_is_flexible_with_the_body_but_never_for_api_versions(spec, version) -> None:
    head = write_response_header(spec, version, 77)
    flexible = spec.is_flexible(version) and spec.key != ApiKey.API_VERSIONS
    assert head == (struct.pack(">iB", 77, 0) if flexible else struct.pack(">i", 77))
    assert read_response_header(spec, version, memoryview(head)) == (77, len(head))


def test_unknown_tags_in_a_response_header_are_skipped() -> None:
    head = struct.pack(">iB", 6, 1) + b"\x07\x03abc"
    assert read_response_header(API[ApiKey.METADATA], 9, memoryview(head + b"body")) == (6, len(head))


def test_truncated_response_header_is_corrupt() -> None:
    with pytest.raises(Corrupt):
        read_response_header(API[ApiKey.METADATA], 9, memoryview(bytes(4)))


def test_a_frame_is_its_pieces_after_their_length() -> None:
    pieces = [b"ab", bytearray(b"c"), memoryview(b"def")]
    assert b"".join(frame(pieces)) == b"\0\0\0\x06abcdef"
    assert frame(pieces)[1:] == pieces


@pytest.mark.parametrize("version", [11, 12])
def test_response_frame_is_length_header_and_body(version: int) -> None:
    spec = API[ApiKey.FETCH]
    batches = memoryview(bytes(1000))
    partition = PartitionData(0, records=Records(1000, [batches]))
    message = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    whole = response_frame(spec, version, 9, message)
    body = encode_response(spec.key, version, message)
    assert b"".join(whole) == b"".join(frame([write_response_header(spec, version, 9), *body]))
    assert len(whole) == len(body)
    assert any(piece is batches for piece in whole)


def test_request_frame_is_read_by_read_header() -> None:
    spec = API[ApiKey.METADATA]
    data = b"".join(request_frame(spec, 12, 3, "me", MetadataRequest(topics=None)))
    view = memoryview(data)[4:]
    assert int.from_bytes(data[:4], "big") == len(view)
    header, position = read_header(view)
    assert decode_request(header.api_key, header.api_version, view[position:]) == MetadataRequest(topics=None)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_what_is_served(version: int) -> None:
    chosen, answer = api_versions_answer(version)
    assert chosen == version
    body = b"".join(encode_response(ApiKey.API_VERSIONS, version, answer))
    read = decode_response(ApiKey.API_VERSIONS, version, memoryview(body))
    assert isinstance(read, ApiVersionsResponse)
    assert read.error_code == ErrorCode.NONE
    assert {entry.api_key for entry in read.api_keys} == SERVED.keys()


@pytest.mark.parametrize("version", [-1, 5, 99, 32767])
def test_unknown_api_versions_version_is_answered_in_version_0_with_the_list(version: int) -> None:
    chosen, answer = api_versions_answer(version)
    assert chosen == 0
    body = b"".join(encode_response(ApiKey.API_VERSIONS, chosen, answer))
    read = decode_response(ApiKey.API_VERSIONS, 0, memoryview(body))
    assert isinstance(read, ApiVersionsResponse)
    assert read.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ApiVersion(18, 0, 4) in read.api_keys


def test_produce_is_advertised_from_0_and_refused_below_3() -> None:
    _, answer = api_versions_answer(0)
    assert ApiVersion(0, 0, 13) in answer.api_keys
    with pytest.raises(Rejected) as refused:
        decode_request(ApiKey.PRODUCE, 2, memoryview(b""))
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_only_given_apis_are_listed() -> None:
    served = {1: API[1], 18: API[18]}
    assert api_versions_answer(0, served)[1].api_keys == [ApiVersion(1, 4, 17), ApiVersion(18, 0, 4)]
