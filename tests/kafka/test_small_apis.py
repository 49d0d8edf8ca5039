"""InitProducerId, FindCoordinator, DescribeCluster."""

import pytest

from floe.model.error_codes import ErrorCode
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    DescribeClusterRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    MetadataRequest,
)


@pytest.mark.parametrize("version", range(6))
async def test_each_idempotent_producer_gets_an_id_of_its_own(wire, version):
    ids = set()
    for _ in range(3):
        answer = await wire.call(ApiKey.INIT_PRODUCER_ID, version, InitProducerIdRequest(None, 1000))
        assert (answer.error_code, answer.producer_epoch) == (0, 0)
        ids.add(answer.producer_id)
    assert len(ids) == 3


async def test_producer_that_had_an_id_gets_a_fresh_one(wire):
    request = InitProducerIdRequest(None, 1000, producer_id=77, producer_epoch=3)
    answer = await wire.call(ApiKey.INIT_PRODUCER_ID, 4, request)
    assert answer.error_code == 0
    assert answer.producer_id != 77


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("tx", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), ("", ErrorCode.INVALID_REQUEST)],
)
async def test_transactional_producers_are_refused_for_good(wire, transactional_id, code):
    request = InitProducerIdRequest(transactional_id, 1000)
    answer = await wire.call(ApiKey.INIT_PRODUCER_ID, 4, request)
    assert (answer.error_code, answer.producer_id) == (code, -1)


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("key_type", [0, 1])
async def test_this_broker_coordinates_everything(house, version, key_type):
    wire = await house.connect()
    request = FindCoordinatorRequest("g", key_type, ["g", "h"])
    answer = await wire.call(ApiKey.FIND_COORDINATOR, version, request)
    found = answer.coordinators if version >= 4 else [answer]
    assert len(found) == (2 if version >= 4 else 1)
    for node in found:
        assert (node.error_code, node.node_id, node.host) == (0, 1, "127.0.0.1")
        assert node.port == house.broker.address.port


@pytest.mark.parametrize("version", [3, 5])
async def test_unknown_kind_of_coordinator_is_refused(wire, version):
    request = FindCoordinatorRequest("g", 9, ["g"])
    answer = await wire.call(ApiKey.FIND_COORDINATOR, version, request)
    told = answer if version < 4 else answer.coordinators[0]
    assert told.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1])
async def test_cluster_is_described_as_in_metadata(wire, version):
    cluster = await wire.call(ApiKey.DESCRIBE_CLUSTER, version, DescribeClusterRequest())
    metadata = await wire.call(ApiKey.METADATA, 12, MetadataRequest([]))
    assert cluster.error_code == 0
    assert cluster.cluster_id == metadata.cluster_id
    assert cluster.controller_id == metadata.controller_id == 1
    (one,), (other,) = cluster.brokers, metadata.brokers
    assert (one.broker_id, one.host, one.port) == (other.node_id, other.host, other.port)


async def test_controllers_have_no_endpoints(wire):
    answer = await wire.call(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest(endpoint_type=2))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


async def test_advertised_address_is_what_clients_are_told(open_house):
    house = await open_house(advertised_listeners="broker.example:1234")
    wire = await house.connect()
    answer = await wire.call(ApiKey.METADATA, 12, MetadataRequest([]))
    assert [(broker.host, broker.port) for broker in answer.brokers] == [("broker.example", 1234)]
