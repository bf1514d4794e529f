"""Turn the URI of a state and Spark's settings into those of an object store.

Credentials are written once: Spark's own keys in ``spark: conf:`` count here as well. Whatever they leave out comes
from the cloud's usual environment variables, files of the machine, or its identity, which the library looks up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_S3 = "spark.hadoop.fs.s3a."
_S3_KEYS = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
_AZURE = "spark.hadoop.fs.azure."
_AZURE_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
"""Environment variables by which the library finds a server that is not Azure's own."""

_GOOGLE_KEY_FILES = (
    "spark.hadoop.google.cloud.auth.service.account.json.keyfile",
    "spark.hadoop.fs.gs.auth.service.account.json.keyfile",
)
_GOOGLE_ENDPOINT = "spark.hadoop.fs.gs.storage.root.url"


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What an object store is opened with. ``config`` may hold secrets; ``plain_http`` allows one without TLS."""

    url: str
    config: Mapping[str, str] = field(repr=False)
    plain_http: bool = False


def store_settings(uri: str, conf: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> StoreSettings:
    """Return the settings of the store that holds a state.

    Args:
        uri: ``s3://``, ``s3a://``, ``abfss://``, ``abfs://`` or ``gs://``.
        conf: Spark's settings; may hold secrets.
        environ: Environment variables. The library reads them itself; an endpoint without TLS must be allowed here.
    """
    scheme, _, rest = uri.partition("://")
    authority = rest.partition("/")[0]
    if scheme in ("s3", "s3a"):
        return _s3(f"s3://{rest}", authority, conf, environ.get("AWS_ENDPOINT_URL", ""))
    if scheme in ("abfs", "abfss"):
        config = _azure(scheme, authority, conf)
        endpoints = (config.get("endpoint"), *(environ.get(name) for name in _AZURE_ENDPOINTS))
        return StoreSettings(uri, config, plain_http=any((url or "").startswith("http://") for url in endpoints))
    return _google(uri, conf)


def _s3(url: str, bucket: str, conf: Mapping[str, str], elsewhere: str) -> StoreSettings:
    def value(key: str) -> str | None:
        # https://hadoop.apache.org/docs/stable/hadoop-aws: a bucket's own key goes before the one for all.
        return conf.get(f"{_S3}bucket.{bucket}.{key}") or conf.get(f"{_S3}{key}")

    config = {name: text for key, name in _S3_KEYS.items() if (text := value(key))}
    endpoint = value("endpoint")
    if endpoint and not re.fullmatch(r"(https?://)?s3[.-][a-z0-9.-]*amazonaws\.com(\.cn)?/?", endpoint):
        if "://" not in endpoint:
            endpoint = f"{'http' if value('connection.ssl.enabled') == 'false' else 'https'}://{endpoint}"
        config["endpoint"] = endpoint
        # S3 itself takes a bucket as part of the host; most other servers know it only as part of the path.
        config["virtual_hosted_style_request"] = str(value("path.style.access") == "false").lower()
    return StoreSettings(url, config, plain_http=config.get("endpoint", elsewhere).startswith("http://"))


def _azure(scheme: str, authority: str, conf: Mapping[str, str]) -> dict[str, str]:
    host = authority.partition("@")[2]

    def value(key: str) -> str | None:
        return conf.get(f"{_AZURE}{key}.{host}") or conf.get(f"{_AZURE}{key}")

    tenant = re.search(r"microsoftonline\.[a-z]+/([^/]+)/", value("account.oauth2.client.endpoint") or "")
    config = {
        "account_key": value("account.key"),
        "sas_key": value("sas.fixed.token"),
        "client_id": value("account.oauth2.client.id"),
        "client_secret": value("account.oauth2.client.secret"),
        "tenant_id": tenant[1] if tenant else None,
    }
    if server := value("abfs.endpoint"):
        # hadoop-azure asks a server of its own address, as an emulator, for /ACCOUNT/CONTAINER.
        plain = scheme == "abfs" and value("always.use.https") == "false"
        config["endpoint"] = f"{'http' if plain else 'https'}://{server}/{host.partition('.')[0]}"
    return {name: text for name, text in config.items() if text}


def _google(uri: str, conf: Mapping[str, str]) -> StoreSettings:
    config = {}
    if file := next((conf[key] for key in _GOOGLE_KEY_FILES if conf.get(key)), None):
        config["service_account_path"] = file
    # A private endpoint of a network of the user's own, or a server of the same protocol.
    if endpoint := conf.get(_GOOGLE_ENDPOINT, "").rstrip("/"):
        config["base_url"] = endpoint
    return StoreSettings(uri, config, plain_http=endpoint.startswith("http://"))
