"""A user writes credentials once: Spark's keys open the store of the state as well."""

from __future__ import annotations

import pytest

from maintainer.engine.store.cloud_settings import bucket_in_host, only_hadoop, store_settings

S3A = "spark.hadoop.fs.s3a."
JCEKS = "spark.hadoop.hadoop.security.credential.provider.path"


def test_the_keys_of_s3a_open_the_bucket_and_a_buckets_own_key_goes_first() -> None:
    conf = {
        f"{S3A}access.key": "all",
        f"{S3A}bucket.lake.access.key": "own",
        f"{S3A}secret.key": "secret",
        f"{S3A}session.token": "token",
        f"{S3A}endpoint.region": "eu-central-1",
        f"{S3A}endpoint": "http://127.0.0.1:9000",
    }
    settings = store_settings("s3a://lake/state", conf)
    assert (settings.url, settings.plain_http) == ("s3://lake/state", True)
    assert settings.config == {
        "access_key_id": "own",
        "secret_access_key": "secret",
        "session_token": "token",
        "region": "eu-central-1",
        "endpoint": "http://127.0.0.1:9000",
        "virtual_hosted_style_request": "false",
    }
    assert store_settings("s3://other/state", conf).config["access_key_id"] == "all"
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("conf", "endpoint", "plain"),
    [
        ({"endpoint": "store:9000"}, "https://lake.store:9000", False),
        ({"endpoint": "store:9000", "connection.ssl.enabled": "false"}, "http://lake.store:9000", True),
        ({"endpoint": "store:9000", "path.style.access": "TRUE"}, "https://store:9000", False),
        ({"endpoint": "s3.eu-central-1.amazonaws.com"}, None, False),
        ({"endpoint": "https://s3.amazonaws.com/"}, None, False),
        ({}, None, False),
    ],
)
def test_an_endpoint_is_that_of_another_server(conf: dict[str, str], endpoint: str | None, plain: bool) -> None:
    settings = store_settings("s3://lake/state", {f"{S3A}{key}": value for key, value in conf.items()})
    assert (settings.config.get("endpoint"), settings.plain_http) == (endpoint, plain)


@pytest.mark.parametrize(
    ("endpoint", "config"),
    [
        ("s3.eu-central-1.amazonaws.com", {"region": "eu-central-1"}),
        ("https://s3.cn-north-1.amazonaws.com.cn", {"region": "cn-north-1"}),
        ("s3.amazonaws.com", {}),
        ("s3-fips.us-east-1.amazonaws.com",
         {"endpoint": "https://lake.s3-fips.us-east-1.amazonaws.com", "virtual_hosted_style_request": "true"}),
    ],
)  # fmt: skip
def test_an_endpoint_of_amazon_says_the_region_and_another_of_its_addresses_stays(
    endpoint: str, config: dict[str, str]
) -> None:
    assert store_settings("s3://lake/t", {f"{S3A}endpoint": endpoint}, {}).config == config
    own = {f"{S3A}endpoint": endpoint, f"{S3A}endpoint.region": "us-west-2"}
    assert store_settings("s3://lake/t", own, {}).config["region"] == "us-west-2"


@pytest.mark.parametrize(
    ("conf", "url"),
    [
        ({"proxy.host": "proxy"}, "http://proxy:80"),
        ({"proxy.host": "proxy", "proxy.ssl.enabled": "true"}, "https://proxy:443"),
        ({"proxy.host": "proxy", "proxy.port": "3128", "bucket.lake.proxy.host": "own"}, "http://own:3128"),
        ({"proxy.port": "3128"}, ""),
    ],
)
def test_the_address_of_a_proxy(conf: dict[str, str], url: str) -> None:
    settings = store_settings("s3://lake/t", {f"{S3A}{key}": value for key, value in conf.items()}, {})
    assert settings.proxy_url == url
    assert ("proxy_excludes" in settings.client_options()) == bool(url), "the machine's own credentials need none"


@pytest.mark.parametrize("style", ["false", None])
def test_without_path_style_a_bucket_is_part_of_the_host(style: str | None) -> None:
    conf = {f"{S3A}endpoint": "https://store/s3/"} | ({f"{S3A}path.style.access": style} if style else {})
    config = store_settings("s3://lake/state", conf).config
    assert (config["endpoint"], config["virtual_hosted_style_request"]) == ("https://lake.store/s3/", "true")


@pytest.mark.parametrize(
    ("environ", "style", "endpoint", "virtual"),
    [
        ({"AWS_ENDPOINT_URL": "http://localhost:9000"}, "false", "http://lake.localhost:9000", "true"),
        ({"AWS_ENDPOINT_URL": "http://localhost:9000"}, "true", "http://localhost:9000", "false"),
        ({"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}, "false", "http://lake.b", "true"),
    ],
)
def test_an_endpoint_of_the_environment_is_asked_as_hadoop_asks_it(
    environ: dict[str, str], style: str, endpoint: str, virtual: str
) -> None:
    settings = store_settings("s3://lake/state", {f"{S3A}path.style.access": style}, environ)
    assert settings.config == {"endpoint": endpoint, "virtual_hosted_style_request": virtual}
    assert settings.plain_http
    assert store_settings("s3://lake/t", {f"{S3A}endpoint": "https://own"}, environ).config["endpoint"] == (
        "https://lake.own"
    )


@pytest.mark.parametrize(
    ("endpoint", "bucket", "address"),
    [
        ("http://localhost:9000", "lake", "http://lake.localhost:9000"),
        ("http://localhost:9000", "my.lake", "http://my.lake.localhost:9000"),
        ("https://store", "my.lake", None),  # its certificate would not be for two labels
        ("http://store", "my..lake", None),
        ("http://store", "10.0.0.1", None),
        ("http://store", "Lake", None),
        ("http://store", "my_lake", None),
        ("http://store", "ab", None),
        ("http://127.0.0.1:9000", "lake", None),
        ("http://127.0.0.1:9000", "my.lake", "http://my.lake.127.0.0.1:9000"),
        ("https://127.0.0.1:9000", "my.lake", None),
        ("http://[::1]:9000", "lake", None),
        ("http://[::1", "lake", None),
    ],
)
def test_a_bucket_that_is_none_of_a_hosts_labels_is_part_of_the_path(
    endpoint: str, bucket: str, address: str | None
) -> None:
    assert bucket_in_host(endpoint, bucket) == address


def test_the_keys_of_azure_are_those_of_the_account() -> None:
    host = "acme.dfs.core.windows.net"
    conf = {
        f"spark.hadoop.fs.azure.account.key.{host}": "key",
        "spark.hadoop.fs.azure.account.oauth2.client.id": "id",
        "spark.hadoop.fs.azure.account.oauth2.client.secret": "secret",
        "spark.hadoop.fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
        "spark.hadoop.fs.azure.sas.fixed.token.other.dfs.core.windows.net": "sas",
    }
    assert store_settings(f"abfss://lake@{host}/state", conf).config == {
        "account_key": "key",
        "client_id": "id",
        "client_secret": "secret",
        "authority_host": "https://login.microsoftonline.com",
        "tenant_id": "tenant",
    }


@pytest.mark.parametrize("name", ["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"])
def test_a_server_of_azures_protocol_may_do_without_tls(name: str) -> None:
    uri = "abfss://lake@acme.dfs.core.windows.net/state"
    assert store_settings(uri, {}, {name: "http://127.0.0.1:10000/acme"}).plain_http
    assert not store_settings(uri, {}, {name: "https://store/acme"}).plain_http
    assert not store_settings(uri, {}, {}).plain_http


@pytest.mark.parametrize(
    ("uri", "always_tls", "url"),
    [
        ("abfs://lake@acme.dfs.core.windows.net/state", "false", "http://127.0.0.1:10000/acme"),
        ("abfs://lake@acme.dfs.core.windows.net/state", "true", "https://127.0.0.1:10000/acme"),
        ("abfss://lake@acme.dfs.core.windows.net/state", "false", "https://127.0.0.1:10000/acme"),
    ],
)
def test_the_server_that_hadoop_is_sent_to_is_that_of_the_state(uri: str, always_tls: str, url: str) -> None:
    azure = "spark.hadoop.fs.azure."
    conf = {f"{azure}abfs.endpoint": "127.0.0.1:10000", f"{azure}always.use.https": always_tls}
    settings = store_settings(uri, conf, {})
    assert (settings.config, settings.plain_http) == ({"endpoint": url}, url.startswith("http://"))


def test_the_key_file_of_google() -> None:
    conf = {"spark.hadoop.fs.gs.auth.service.account.json.keyfile": "/key.json"}
    assert store_settings("gs://lake/state", conf).config == {"service_account_path": "/key.json"}
    assert store_settings("gs://lake/state", {}).config == {}


@pytest.mark.parametrize(
    ("conf", "config", "plain"),
    [
        ({"storage.root.url": "https://storage-lake.p.googleapis.com/"},
         {"base_url": "https://storage-lake.p.googleapis.com"}, False),
        ({"storage.root.url": "http://127.0.0.1:4443/", "auth.service.account.json.keyfile": "/key.json"},
         {"base_url": "http://127.0.0.1:4443", "service_account_path": "/key.json"}, True),
        ({"auth.type": "COMPUTE_ENGINE"}, {}, False),
    ],
    ids=["private endpoint", "server without TLS", "the machine's account"],
)  # fmt: skip
def test_the_endpoint_of_google_is_that_of_the_connector(
    conf: dict[str, str], config: dict[str, str], plain: bool
) -> None:
    settings = store_settings("gs://lake/state", {f"spark.hadoop.fs.gs.{key}": value for key, value in conf.items()})
    assert (settings.config, settings.plain_http) == (config, plain)


@pytest.mark.parametrize(
    ("conf", "named"),
    [
        ({}, None),
        ({f"{S3A}access.key": "a", f"{S3A}secret.key": "b"}, None),
        ({f"{S3A}aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"}, None),
        ({f"{S3A}aws.credentials.provider": "com.acme.Vault"}, f"{S3A}aws.credentials.provider"),
        (
            {f"{S3A}aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"},
            f"{S3A}aws.credentials.provider",
        ),
        (
            {f"{S3A}aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider, com.acme.Vault"},
            f"{S3A}aws.credentials.provider",
        ),
        ({f"{S3A}aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"}, None),
        ({f"{S3A}bucket.lake.encryption.algorithm": "CSE-KMS"}, f"{S3A}bucket.lake.encryption.algorithm"),
        ({f"{S3A}bucket.other.encryption.algorithm": "CSE-KMS"}, None),
        ({f"{S3A}server-side-encryption-algorithm": "CSE-KMS"}, f"{S3A}server-side-encryption-algorithm"),
        # The bucket's own goes first.
        ({f"{S3A}bucket.lake.encryption.algorithm": "SSE-KMS", f"{S3A}encryption.algorithm": "CSE-KMS"}, None),
        ({f"{S3A}requester.pays.enabled": "false"}, None),
        ({f"{S3A}requester.pays.enabled": "true"}, None),
        ({f"{S3A}endpoint.fips": "false"}, None),
        ({f"{S3A}endpoint.fips": "true"}, f"{S3A}endpoint.fips"),
        ({f"{S3A}proxy.host": "proxy"}, None),
        ({f"{S3A}proxy.host": "proxy", f"{S3A}proxy.domain": "ACME"}, f"{S3A}proxy.domain"),
        ({f"{S3A}acl.default": "BucketOwnerFullControl"}, f"{S3A}acl.default"),
        ({JCEKS: "jceks://file/keys"}, JCEKS),
    ],
)
def test_a_setting_without_an_equal_sends_the_store_through_hadoop(conf: dict[str, str], named: str | None) -> None:
    assert only_hadoop("s3a://lake/t", conf) == named


def test_each_cloud_has_settings_that_only_hadoop_understands() -> None:
    host = "acme.dfs.core.windows.net"
    azure = {f"spark.hadoop.fs.azure.account.auth.type.{host}": "Custom"}
    assert only_hadoop(f"abfss://lake@{host}/t", azure) == next(iter(azure))
    assert only_hadoop(f"abfss://lake@{host}/t", {next(iter(azure)): "SharedKey"}) is None
    assert only_hadoop(f"abfss://lake@{host}/t", {JCEKS: "jceks://file/keys"}) == JCEKS
    login = {"spark.hadoop.fs.azure.account.oauth2.client.endpoint": "https://login.example/token"}
    assert only_hadoop(f"abfss://lake@{host}/t", login) == next(iter(login)), "no tenant can be read from it"
    google = {"spark.hadoop.fs.gs.auth.type": "USER_CREDENTIALS"}
    assert only_hadoop("gs://lake/t", google) == next(iter(google))
    assert only_hadoop("gs://lake/t", {next(iter(google)): "APPLICATION_DEFAULT"}) is None
