"""ApiVersions: what a client and a broker can say to each other."""
# ruff: noqa: RUF012 (an empty list default is copied for every instance)

from typing import Annotated

from floe.wire.kafka.schema.fields import Bool, Int16, Int32, Int64, String, Struct, since, tag


class ApiVersionsRequest(Struct):
    client_software_name: Annotated[String, since(3)] = ""
    client_software_version: Annotated[String, since(3)] = ""


class ApiVersion(Struct):
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Struct):
    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class FinalizedFeatureKey(Struct):
    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class ApiVersionsResponse(Struct):
    error_code: Int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    supported_features: Annotated[list[SupportedFeatureKey], since(3), tag(0)] = []
    finalized_features_epoch: Annotated[Int64, since(3), tag(1)] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], since(3), tag(2)] = []
    zk_migration_ready: Annotated[Bool, since(3), tag(3)] = False
