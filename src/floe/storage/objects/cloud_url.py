"""From a URL to the clients of a bucket: `s3://bucket/prefix?region=eu-west-1&endpoint=https://host`.

Query parameters are obstore's names for the store's and the client's settings; what the URL does not say
comes from the environment (AWS_*, GOOGLE_*, AZURE_*), which is the right place for secrets. Payloads are left
unsigned over HTTPS, where TLS protects them already: signing costs 6 ms of a core for 8 MiB.

Invariant: no query parameter's value is ever part of an error message.
"""

import os
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from floe.storage.objects.cloud import CloudObjects

SCHEMES = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
_ENVIRONMENT = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
_CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "pool_idle_timeout",
        "proxy_url",
        "timeout",
    }
)
_TIMEOUT_DEFAULT = "60s"
_CONNECT_TIMEOUT_DEFAULT = "5s"
_REPEATS_MAX = 3
_NO_REPEATS = 0


def open_cloud(url: str) -> CloudObjects:
    """Raises ValueError for a URL that names no store; talks to nobody yet."""
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.netloc}{parts.path}"
    if not parts.netloc:
        raise ValueError(f"an object store URL names a bucket, as in s3://bucket/prefix. url={where}")
    config, options = _settings(parts.scheme, parts.query)

    def client(repeats_max: int) -> ObjectStore:
        store: ObjectStore = SCHEMES[parts.scheme](
            parts.netloc,
            prefix=unquote(parts.path).strip("/") or None,
            config=config,
            client_options=options,
            retry_config={"max_retries": repeats_max},
        )
        return store

    try:
        return CloudObjects(client(_NO_REPEATS), repeating=client(_REPEATS_MAX))
    except (BaseError, TypeError, ValueError):
        names = ", ".join(sorted({**config, **options}))
        raise ValueError(f"the object store's settings are refused. url={where} given={names}") from None


def _settings(scheme: str, query: str) -> tuple[dict[str, Any], dict[str, Any]]:
    config: dict[str, Any] = {}
    options: dict[str, Any] = {"timeout": _TIMEOUT_DEFAULT, "connect_timeout": _CONNECT_TIMEOUT_DEFAULT}
    for name, value in parse_qsl(query, keep_blank_values=True):
        (options if name in _CLIENT_OPTIONS else config)[name] = value
    # obstore takes this one from the environment only when it is given no client settings at all.
    allow_http = os.environ.get(f"{_ENVIRONMENT[scheme]}_ALLOW_HTTP")
    if allow_http:
        options.setdefault("allow_http", allow_http)
    if scheme == "s3" and "unsigned_payload" not in config and _is_secure(config, options):
        config["unsigned_payload"] = "true"
    return config, options


def _is_secure(config: dict[str, Any], options: dict[str, Any]) -> bool:
    return options.get("allow_http", "false") == "false" and not str(
        config.get("endpoint", "https:")
    ).startswith("http:")
