"""ApiVersions: what this broker serves. The only API that answers versions it does not know."""

from functools import cache

from floe.kafka.call import Call, Pieces
from floe.kafka.door import Door
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import api_versions_answer, encode_response
from floe.wire.kafka.schema.fields import Buffer


def handle(_door: Door, call: Call) -> Pieces:
    """Never reads the body: it holds only the client's own name, and an unknown version's cannot be read."""
    known = call.route.spec.knows(call.version)
    version, body = _encoded(call.version if known else call.route.spec.max_version + 1)
    return call.with_head([body], version=version)


@cache
def _encoded(version: int) -> tuple[int, Buffer]:
    """The version of the answer and its body; bounded by the versions that exist."""
    answered, message = api_versions_answer(version)
    return answered, b"".join(encode_response(ApiKey.API_VERSIONS, answered, message))
