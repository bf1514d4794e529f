"""Turn the URI of a state or a table and Spark's settings into those of an object store.

Credentials are written once: Spark's own keys in ``spark: conf:`` count here as well. Whatever they leave out comes
from the cloud's usual environment variables, files of the machine, or its identity, which the library looks up.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

_S3, _AZURE, _GOOGLE = "spark.hadoop.fs.s3a.", "spark.hadoop.fs.azure.", "spark.hadoop.fs.gs."
_JCEKS = "spark.hadoop.hadoop.security.credential.provider.path"
"""Hadoop looks there for each secret first, of whatever store."""

_S3_KEYS = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
_S3_SWITCHES = {
    ("requester.pays.enabled", "true"): ("request_payer", "true"),
    ("multiobjectdelete.enable", "false"): ("disable_bulk_delete", "true"),
    ("encryption.algorithm", "aes256"): ("server_side_encryption", "AES256"),
    ("encryption.algorithm", "sse-kms"): ("server_side_encryption", "aws:kms"),
    ("encryption.algorithm", "dsse-kms"): ("server_side_encryption", "aws:kms:dsse"),
    ("encryption.algorithm", "sse-c"): ("server_side_encryption", "sse-c"),
}
"""A key of Hadoop's with a value in small letters, and what obstore calls the same."""

_FORMERLY = {"encryption.algorithm": "server-side-encryption-algorithm", "encryption.key": "server-side-encryption.key"}
_PROXY = ("proxy.host", "proxy.port", "proxy.ssl.enabled", "proxy.username", "proxy.password")
_S3_MORE = ("endpoint", "path.style.access", "connection.ssl.enabled", "encryption.key", "multiobjectdelete.enable")
_NOT_BY_PROXY = "169.254.169.254,169.254.170.2,metadata.google.internal"
"""Where a machine of a cloud asks for its own credentials."""

_AMAZON = re.compile(r"(?:https?://)?s3(?:[.-]([a-z]+-[a-z-]+-\d))?[.]amazonaws[.]com(?:[.]cn)?/?")
"""Amazon's own endpoints of a region; not those of FIPS, of both kinds of IP, or of one network."""

_IP = re.compile(r"[0-9]+(?:[.][0-9]+){3}")
_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_LABELS = re.compile(rf"(?!{_IP.pattern}\Z)(?!.*[.-]{{2}})[a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9]")
"""A bucket's name that may stand before a host, without dots and with them."""

_AZURE_KEYS = {
    "SharedKey": {"account.key": "account_key"},
    "SAS": {"sas.fixed.token": "sas_key"},
    "OAuth": {"account.oauth2.client.id": "client_id", "account.oauth2.client.secret": "client_secret"},
}
_LOGIN = "account.oauth2.client.endpoint"
_AZURE_MORE = (_LOGIN, "abfs.endpoint", "always.use.https")
_AUTHORITY = re.compile(r"(https?://[^/]+)/([^/]+)/oauth2/.*")
_AZURE_HOST = re.compile(r"[^.]+[.](?:dfs[.]core[.]windows[.]net|dfs[.]fabric[.]microsoft[.]com)")
"""What the library takes an account from; other clouds of Azure's have hosts of the same form."""

_AZURE_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
"""Environment variables by which the library finds a server that is not Azure's own."""

_SIGNER = (
    r"\s*(?:\w+[.])*(?:(?:SimpleAWS|TemporaryAWS|EnvironmentVariable|IAMInstance|InstanceProfile|Container"
    r"|WebIdentityTokenFile)CredentialsProvider)\s*"
)
"""Ways to log in to S3 that obstore has as well; each of them finds its keys where Hadoop's does."""

_ANONYMOUS = re.compile(r"(?:\w+[.])*Anonymous(?:AWS)?CredentialsProvider")
_PROVIDERS = "aws.credentials.provider"
_ONLY_HADOOP = {
    _S3: (
        *(_PROVIDERS, "security.credential.provider.path", "assumed.role.arn", "encryption.cse.kms.region"),
        *("encryption.algorithm", "encryption.context", "endpoint.fips", "accesspoint.arn", "acl.default"),
        *("requester.pays.enabled", "proxy.domain", "proxy.workstation", "custom.signers", "signing-algorithm"),
        *("s3.client.factory.impl", "create.storage.class"),
    ),
    _AZURE: (
        *("account.auth.type", "account.oauth.provider.type", "sas.token.provider.type", "account.keyprovider"),
        *("encryption.encoded.client-provided-key", _LOGIN),
    ),
    _GOOGLE: (
        *("auth.type", "auth.impersonation.service.account", "encryption.key", "requester.pays.mode"),
        *("auth.access.token.provider", "auth.access.token.provider.impl"),
    ),
}
"""Settings that obstore has no equal for, or not for each value: such a store is read through Hadoop."""

_ALIKE = {
    _PROVIDERS: re.compile(rf"{_SIGNER}(?:,{_SIGNER})*|{_ANONYMOUS.pattern}"),
    "requester.pays.enabled": re.compile("true|false"),
    "encryption.algorithm": re.compile("|".join(value for key, value in _S3_SWITCHES if "encryption" in key)),
    "endpoint.fips": re.compile("false"),
    "account.auth.type": re.compile("|".join(_AZURE_KEYS).lower()),
    "account.oauth.provider.type": re.compile(r"(?:.*[.])?clientcredstokenprovider"),
    _LOGIN: _AUTHORITY,
    "auth.type": re.compile("application_default|compute_engine|service_account_json_keyfile|unauthenticated"),
    "requester.pays.mode": re.compile("disabled"),
}
"""Values of these that mean the same here; in small letters, but for names of classes that log in to S3."""

_KEY_FILE, _ROOT = "auth.service.account.json.keyfile", "storage.root.url"
_GOOGLE_MORE = (_KEY_FILE, _ROOT, "proxy.address", "proxy.username", "proxy.password")


_CONSTRUCTING = threading.Lock()
_HIDDEN = {
    "endpoint": r"AWS_(?:ENDPOINT_URL_S3|S3_EXPRESS)",
    "access_key_id": r"AWS_(?:SESSION_TOKEN|TOKEN|SKIP_SIGNATURE)",
    "server_side_encryption": r"AWS_SSE_\w+",
    **dict.fromkeys(("account_key", "sas_key", "client_id"), r"AZURE_(?!(?:STORAGE_)?(?:ACCOUNT_NAME|ENDPOINT)$)\w+"),
    "service_account_path": r"GOOGLE_(?:SERVICE_ACCOUNT|APPLICATION_CREDENTIALS|BEARER_TOKEN|SKIP_SIGNATURE)\w*",
}
"""Variables of the environment that obstore prefers to a setting, or joins to it, and that are not meant for it:
https://github.com/developmentseed/obstore/issues/753"""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What an object store is opened with. ``config`` and ``proxy_url`` may hold secrets.

    ``plain_http`` allows a store without TLS.
    """

    url: str
    config: Mapping[str, str] = field(repr=False)
    plain_http: bool = False
    proxy_url: str = field(default="", repr=False)

    @property
    def key(self) -> tuple[object, ...]:
        """What is equal for the same client."""
        return self.url, tuple(sorted(self.config.items())), self.plain_http, self.proxy_url

    def client_options(self) -> dict[str, object]:
        """Return what the client's connections are made with."""
        proxy = {"proxy_url": self.proxy_url, "proxy_excludes": _NOT_BY_PROXY} if self.proxy_url else {}
        return {**proxy, **({"allow_http": True} if self.plain_http else {})}


class _Settings:
    """The settings of Spark for one place: the bucket's own before those for all."""

    def __init__(self, uri: str, conf: Mapping[str, str]) -> None:
        self.scheme, _, self.rest = uri.partition("://")
        self._authority = self.rest.partition("/")[0]
        self.host = self._authority.partition("@")[2]
        self.family = {"s3": _S3, "s3a": _S3, "gs": _GOOGLE}.get(self.scheme, _AZURE)
        self._conf = conf

    def names(self, key: str) -> tuple[str, ...]:
        """Return what a setting may be called, what counts first before the others."""
        if self.family == _S3:
            keys = (key, _FORMERLY[key]) if key in _FORMERLY else (key,)
            return tuple(f"{_S3}{part}{key}" for part in (f"bucket.{self._authority}.", "") for key in keys)
        if self.family == _AZURE:
            return (f"{_AZURE}{key}.{self.host}", f"{_AZURE}{key}")
        first = (f"spark.hadoop.google.cloud.{key}",) if key == _KEY_FILE else ()
        return (*first, f"{_GOOGLE}{key}")

    def name(self, key: str) -> str | None:
        """Return the name by which a setting is set, None where it is not."""
        return next((name for name in self.names(key) if self._conf.get(name, "").strip()), None)

    def __getitem__(self, key: str) -> str:
        """Return the value of a setting, nothing where it is not set."""
        return self._conf.get(self.name(key) or "", "").strip()

    def says(self, key: str, value: str) -> bool:
        """Whether a setting has a value; Hadoop reads `TRUE` as `true`."""
        return self[key].lower() == value


@contextmanager
def hidden_from_environment(settings: StoreSettings) -> Iterator[None]:
    """Take out of the environment what would win over a setting, while a client is made; it reads it only then."""
    hidden = re.compile("|".join(names for key, names in _HIDDEN.items() if key in settings.config) or r"(?!)")
    with _CONSTRUCTING:
        before = {name: os.environ.pop(name) for name in list(os.environ) if hidden.fullmatch(name)}
        try:
            yield
        finally:
            os.environ.update(before)


def setting_names(uri: str) -> tuple[str, ...]:
    """Return the names of all settings of Spark that matter for a place, the bucket's own first.

    Args:
        uri: As for ``store_settings``.
    """
    settings = _Settings(uri, {})
    keys = {
        _S3: (*_S3_KEYS, *_S3_MORE, *_PROXY),
        _AZURE: (*(key for keys in _AZURE_KEYS.values() for key in keys), *_AZURE_MORE),
        _GOOGLE: _GOOGLE_MORE,
    }[settings.family]
    named = (name for key in (*keys, *_ONLY_HADOOP[settings.family]) for name in settings.names(key))
    return tuple(dict.fromkeys((*named, _JCEKS)))


def only_hadoop(uri: str, conf: Mapping[str, str]) -> str | None:
    """Return the first setting of a place that obstore has no equal for; None where all are understood."""
    settings = _Settings(uri, conf)
    if conf.get(_JCEKS):
        return _JCEKS
    for key in _ONLY_HADOOP[settings.family]:
        value = settings[key]
        alike = _ALIKE.get(key)
        if value and not (alike is not None and alike.fullmatch(value if key == _PROVIDERS else value.lower())):
            return settings.name(key)
    return None


def store_settings(uri: str, conf: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> StoreSettings:
    """Return the settings of the store that holds a state or a table.

    Args:
        uri: ``s3://``, ``s3a://``, ``abfss://``, ``abfs://`` or ``gs://``.
        conf: Spark's settings; may hold secrets.
        environ: Environment variables. The library reads them itself; an endpoint is taken from here, as by Hadoop.
    """
    settings = _Settings(uri, conf)
    if settings.family == _S3:
        return _s3(settings, environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL", ""))
    if settings.family == _AZURE:
        config = _azure(settings)
        if settings.host and "endpoint" not in config and not _AZURE_HOST.fullmatch(settings.host):
            account, _, zone = settings.host.partition(".")
            config |= {"account_name": account, "endpoint": f"https://{account}.{zone.replace('dfs', 'blob', 1)}"}
            uri = f"az://{settings.rest.partition('@')[0]}/{settings.rest.partition('/')[2]}"
        endpoints = (config.get("endpoint"), *(environ.get(name) for name in _AZURE_ENDPOINTS))
        return StoreSettings(uri, config, plain_http=any((url or "").startswith("http://") for url in endpoints))
    return _google(uri, settings)


def _s3(settings: _Settings, elsewhere: str) -> StoreSettings:
    config = {name: text for key, name in _S3_KEYS.items() if (text := settings[key])}
    config |= {name: text for (key, value), (name, text) in _S3_SWITCHES.items() if settings.says(key, value)}
    if _ANONYMOUS.fullmatch(settings[_PROVIDERS]):
        config["skip_signature"] = "true"
    encryption, key = config.get("server_side_encryption", ""), settings["encryption.key"]
    if key and encryption not in ("", "AES256"):
        config["sse_customer_key_base64" if encryption == "sse-c" else "sse_kms_key_id"] = key
    endpoint = settings["endpoint"] or elsewhere
    if amazon := _AMAZON.fullmatch(endpoint):
        if amazon[1]:
            config.setdefault("region", amazon[1])
    elif endpoint:
        if "://" not in endpoint:
            endpoint = f"{'http' if settings.says('connection.ssl.enabled', 'false') else 'https'}://{endpoint}"
        bucket = settings.rest.partition("/")[0]
        in_host = None if settings.says("path.style.access", "true") else bucket_in_host(endpoint, bucket)
        config["endpoint"] = in_host or endpoint
        config["virtual_hosted_style_request"] = str(in_host is not None).lower()
    proxy = ""
    if host := settings["proxy.host"]:
        tls = settings.says("proxy.ssl.enabled", "true")
        address = f"{host}:{settings['proxy.port'] or (443 if tls else 80)}"
        proxy = _proxy_url("https" if tls else "http", address, settings)
    plain = config.get("endpoint", "").startswith("http://")
    return StoreSettings(f"s3://{settings.rest}", config, plain, proxy)


def bucket_in_host(endpoint: str, bucket: str) -> str | None:
    """Return the address that Hadoop asks for a bucket without ``path.style.access``: Amazon's SDK has the rule.

    None where the bucket is part of the path all the same: its name is none of a host, the server has only a number,
    or a certificate would have to be for two labels. With dots, and without TLS, the SDK does not look at the server.
    """
    try:
        address = urlsplit(endpoint)
        host = address.hostname or ""
    except ValueError:
        return None
    named = host and ":" not in host and not _IP.fullmatch(host)
    dotted = "." in bucket and address.scheme == "http" and ":" not in host
    if not (named and _LABEL.fullmatch(bucket)) and not (dotted and _LABELS.fullmatch(bucket)):
        return None
    return address._replace(netloc=f"{bucket}.{address.netloc}").geturl()


def _proxy_url(scheme: str, address: str, settings: _Settings) -> str:
    user, password = (quote(settings[key], safe="") for key in ("proxy.username", "proxy.password"))
    return f"{scheme}://{f'{user}:{password}@' if user else ''}{address}"


def _azure(settings: _Settings) -> dict[str, str]:
    kind = settings["account.auth.type"].lower()
    # Where it is not said how to log in, the library takes what is there.
    keys = {key: name for way, keys in _AZURE_KEYS.items() for key, name in keys.items() if kind in ("", way.lower())}
    config = {name: text.removeprefix("?") for key, name in keys.items() if (text := settings[key])}
    if "client_id" in config and (login := _AUTHORITY.match(settings[_LOGIN])):
        config["authority_host"], config["tenant_id"] = login[1], login[2]
    if server := settings["abfs.endpoint"]:
        # hadoop-azure asks a server of its own address, as an emulator, for /ACCOUNT/CONTAINER.
        plain = settings.scheme == "abfs" and settings.says("always.use.https", "false")
        config["endpoint"] = f"{'http' if plain else 'https'}://{server}/{settings.host.partition('.')[0]}"
    return config


def _google(uri: str, settings: _Settings) -> StoreSettings:
    config = {}
    if file := settings[_KEY_FILE]:
        config["service_account_path"] = file
    if settings.says("auth.type", "unauthenticated"):
        config["skip_signature"] = "true"
    # A private endpoint of a network of the user's own, or a server of the same protocol.
    if endpoint := settings[_ROOT].rstrip("/"):
        config["base_url"] = endpoint
    proxy = settings["proxy.address"]
    return StoreSettings(
        uri, config, endpoint.startswith("http://"), _proxy_url("http", proxy, settings) if proxy else ""
    )
