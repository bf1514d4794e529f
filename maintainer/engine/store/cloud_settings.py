"""Turn the URI of a state or a table and Spark's settings into those of an object store.

Credentials are written once: Spark's own keys in ``spark: conf:`` count here as well. Whatever they leave out comes
from the cloud's usual environment variables, files of the machine, or its identity, which the library looks up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

SERVED_SCHEMES = frozenset({"s3", "s3a", "abfs", "abfss", "gs"})
"""Addresses that this client reads and writes."""


def answers_by_request(address: str) -> bool:
    """Whether what lies at a path or URI is asked for over the network, by whatever client."""
    return urlsplit(address).scheme.lower() not in ("", "file")


_S3 = "spark.hadoop.fs.s3a."
_S3_KEYS = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
_AZURE = "spark.hadoop.fs.azure."
_AZURE_KEYS = {
    "account.key": "account_key",
    "sas.fixed.token": "sas_key",
    "account.oauth2.client.id": "client_id",
    "account.oauth2.client.secret": "client_secret",
    "account.oauth2.client.endpoint": "",
}
_AZURE_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
"""Environment variables by which the library finds a server that is not Azure's own."""

_SIGNERS = re.compile(
    r"(?:^|[.])(?:SimpleAWSCredentialsProvider|TemporaryAWSCredentialsProvider|EnvironmentVariableCredentialsProvider"
    r"|IAMInstanceCredentialsProvider|InstanceProfileCredentialsProvider|ContainerCredentialsProvider"
    r"|WebIdentityTokenFileCredentialsProvider|EnvironmentVariableCredentialsProvider)$"
)
"""Ways to log in to S3 that obstore has as well; each of them finds its keys where Hadoop's does."""

_PROVIDERS = "aws.credentials.provider"
_ONLY_HADOOP = {
    "s3a": (
        *(_PROVIDERS, "security.credential.provider.path", "assumed.role.arn", "encryption.cse.kms.region"),
        *("encryption.algorithm", "server-side-encryption-algorithm", "endpoint.fips", "accesspoint.arn"),
        *("requester.pays.enabled", "proxy.host", "custom.signers", "s3.client.factory.impl", "create.storage.class"),
    ),
    "azure": (
        *("account.auth.type", "account.oauth.provider.type", "sas.token.provider.type", "account.keyprovider"),
        "encryption.encoded.client-provided-key",
    ),
    "gs": (
        *("auth.type", "auth.impersonation.service.account", "encryption.key", "requester.pays.mode", "proxy.address"),
        *("auth.access.token.provider", "auth.access.token.provider.impl"),
    ),
}
"""Settings that obstore has no equal for, or that are not translated: such a store is read through Hadoop."""

_ALIKE = {
    ("s3a", "requester.pays.enabled"): ("false",),
    ("azure", "account.auth.type"): ("SharedKey",),
    ("gs", "auth.type"): ("APPLICATION_DEFAULT", "COMPUTE_ENGINE", "SERVICE_ACCOUNT_JSON_KEYFILE"),
}
"""Values of these that say what holds here anyway."""

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


def setting_names(uri: str) -> tuple[str, ...]:
    """Return the names of all settings of Spark that matter for a place, the bucket's own first.

    Args:
        uri: As for ``store_settings``.
    """
    scheme, _, rest = uri.partition("://")
    authority = rest.partition("/")[0]
    if scheme in ("s3", "s3a"):
        keys = (*_S3_KEYS, "endpoint", "path.style.access", "connection.ssl.enabled", *_ONLY_HADOOP["s3a"])
        return tuple(f"{_S3}{part}{key}" for part in (f"bucket.{authority}.", "") for key in keys)
    if scheme in ("abfs", "abfss"):
        host = authority.partition("@")[2]
        keys = (*_AZURE_KEYS, "abfs.endpoint", "always.use.https", *_ONLY_HADOOP["azure"])
        return tuple(f"{_AZURE}{key}{part}" for key in keys for part in (f".{host}", ""))
    google = (f"spark.hadoop.fs.gs.{key}" for key in _ONLY_HADOOP["gs"])
    return (*_GOOGLE_KEY_FILES, _GOOGLE_ENDPOINT, *google)


def only_hadoop(uri: str, conf: Mapping[str, str]) -> str | None:
    """Return the first setting of a place that obstore has no equal for; None where all are understood."""
    for name in setting_names(uri):
        value = conf.get(name)
        family = next((family for family in _ONLY_HADOOP if f".fs.{family}." in name), "")
        key = next((key for key in _ONLY_HADOOP.get(family, ()) if f".{key}" in name), None)
        if not value or key is None or value in _ALIKE.get((family, key), ()):
            continue
        if key == _PROVIDERS and all(_SIGNERS.search(provider.strip()) for provider in value.split(",")):
            continue
        return name
    return None


def store_settings(uri: str, conf: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> StoreSettings:
    """Return the settings of the store that holds a state or a table.

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
    config = {name: value(key) for key, name in _AZURE_KEYS.items() if name}
    config["tenant_id"] = tenant[1] if tenant else None
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
