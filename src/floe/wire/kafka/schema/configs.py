"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""
# ruff: noqa: RUF012 (an empty list default is copied for every instance)

from typing import Annotated

from floe.wire.kafka.schema.fields import Bool, Int8, Int16, Int32, String, Struct, since


class DescribeConfigsResource(Struct):
    resource_type: Int8 = 0
    resource_name: String = ""
    configuration_keys: list[String] | None = None


class DescribeConfigsRequest(Struct):
    resources: list[DescribeConfigsResource] = []
    include_synonyms: Bool = False
    include_documentation: Annotated[Bool, since(3)] = False


class DescribeConfigsSynonym(Struct):
    name: String = ""
    value: String | None = None
    source: Int8 = 0


class DescribeConfigsResourceResult(Struct):
    name: String = ""
    value: String | None = None
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Annotated[Int8, since(3)] = 0
    documentation: Annotated[String | None, since(3)] = None


class DescribeConfigsResult(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[DescribeConfigsResourceResult] = []


class DescribeConfigsResponse(Struct):
    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []


class AlterableConfig(Struct):
    name: String = ""
    value: String | None = None


class AlterConfigsResource(Struct):
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = []


class AlterConfigsRequest(Struct):
    resources: list[AlterConfigsResource] = []
    validate_only: Bool = False


class AlterConfigsResourceResponse(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""


class AlterConfigsResponse(Struct):
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []


class IncrementalAlterableConfig(Struct):
    name: String = ""
    config_operation: Int8 = 0
    value: String | None = None


class IncrementalAlterConfigsResource(Struct):
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[IncrementalAlterableConfig] = []


class IncrementalAlterConfigsRequest(Struct):
    resources: list[IncrementalAlterConfigsResource] = []
    validate_only: Bool = False


class IncrementalAlterConfigsResponse(Struct):
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
