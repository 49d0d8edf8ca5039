"""FindCoordinator."""
# ruff: noqa: RUF012 (an empty list default is copied for every instance)

from typing import Annotated

from floe.wire.kafka.schema.fields import Int8, Int16, Int32, String, Struct, between, since, until


class FindCoordinatorRequest(Struct):
    key: Annotated[String, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    coordinator_keys: Annotated[list[String], since(4)] = []


class Coordinator(Struct):
    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


class FindCoordinatorResponse(Struct):
    """One coordinator in fields of its own up to version 3, a list from version 4 on."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[String | None, between(1, 3)] = None
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[String, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[list[Coordinator], since(4)] = []
