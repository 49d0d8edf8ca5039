"""ApiVersions, and what happens to requests that are not served."""

import pytest

from floe.model.error_codes import ErrorCode
from floe.wire.kafka.apis import API, SERVED, ApiKey
from floe.wire.kafka.messages import (
    ApiVersionsRequest,
    HeartbeatRequest,
    MetadataRequest,
    decode_response,
)


@pytest.mark.parametrize("version", range(5))
async def test_every_served_api_is_listed_with_its_versions(wire, version):
    answer = await wire.call(ApiKey.API_VERSIONS, version, ApiVersionsRequest("client", "1.0"))
    assert answer.error_code == 0
    told = {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys}
    assert told == {spec.key: (spec.advertised_min, spec.max_version) for spec in SERVED.values()}
    assert told[ApiKey.PRODUCE][0] == 0  # older librdkafka turns compression off otherwise


async def test_unknown_version_of_api_versions_is_answered_in_version_0(wire):
    head = b"\x00\x12\x00\x63" + b"\x00\x00\x00\x07" + b"\x00\x04test" + b"\x00" + b"\xff\xff\xff"
    wire.writer.write(len(head).to_bytes(4, "big") + head)
    size = int.from_bytes(await wire.reader.readexactly(4), "big")
    data = memoryview(await wire.reader.readexactly(size))
    assert int.from_bytes(data[:4], "big") == 7
    answer = decode_response(ApiKey.API_VERSIONS, 0, data[4:])
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert {entry.api_key for entry in answer.api_keys} == set(SERVED)
    # The client may choose again on the same connection.
    again = await wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("client", "1.0"))
    assert again.error_code == 0


async def test_api_that_is_not_served_ends_the_connection_and_no_other(house):
    wire, other = await house.connect(), await house.connect()
    assert ApiKey.HEARTBEAT not in SERVED
    wire.send(ApiKey.HEARTBEAT, 0, HeartbeatRequest())
    assert await wire.is_closed()
    assert (await other.call(ApiKey.METADATA, 12, MetadataRequest())).controller_id == 1
    assert house.metrics.kafka.errors == {"unsupported request": 1}


@pytest.mark.parametrize("version", [0, 1, 2, 14, 32767])
async def test_version_of_produce_that_is_not_served_ends_the_connection(wire, version):
    assert not API[ApiKey.PRODUCE].knows(version)
    head = b"\x00\x00" + version.to_bytes(2, "big") + b"\x00\x00\x00\x07" + b"\xff\xff" + bytes(20)
    wire.writer.write(len(head).to_bytes(4, "big") + head)
    assert await wire.is_closed()
