"""ApiVersions: how a client learns what is served, also when it asks in a version we do not know."""

from collections.abc import Mapping

from floe.model.error_codes import ErrorCode
from floe.wire.kafka.apis import API, SERVED, ApiKey, ApiSpec
from floe.wire.kafka.schema.api_versions import ApiVersion, ApiVersionsResponse


def api_versions_response(
    served: Mapping[int, ApiSpec] = SERVED, error: ErrorCode = ErrorCode.NONE
) -> ApiVersionsResponse:
    """What is served, by key, each from the version that is advertised."""
    specs = sorted(served.values(), key=lambda spec: spec.key)
    return ApiVersionsResponse(
        error_code=error,
        api_keys=[ApiVersion(spec.key, spec.advertised_min, spec.max_version) for spec in specs],
    )


def api_versions_answer(
    version: int, served: Mapping[int, ApiSpec] = SERVED
) -> tuple[int, ApiVersionsResponse]:
    """The version to answer in, and the answer. An unknown version is refused in version 0 with the list,
    from which the client chooses again."""
    if API[ApiKey.API_VERSIONS].knows(version):
        return version, api_versions_response(served)
    return 0, api_versions_response(served, ErrorCode.UNSUPPORTED_VERSION)
