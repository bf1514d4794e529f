"""What a store sees: each setting that is translated is read from the requests of the real client."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from maintainer.engine.store import object_storage, store_clients
from maintainer.engine.store.cloud_settings import only_hadoop, store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import RequestLimits
from maintainer.engine.store.store_failures import NOT_TRUSTED, UNREACHABLE, StoreFailure

S3A = "spark.hadoop.fs.s3a."
AZURE = "spark.hadoop.fs.azure."
SECRET = "planted-secret"
CUSTOMER_KEY = base64.b64encode(b"k" * 32).decode()
LISTING = b"<ListBucketResult><Name>lake</Name><IsTruncated>false</IsTruncated></ListBucketResult>"
ANSWERS = {
    "list-type": LISTING,
    "uploads": b"<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>",
    "delete": b"<DeleteResult><Deleted><Key>a</Key></Deleted></DeleteResult>",
    "uploadId": b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>",
    "restype": b"<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>",
}
HEADERS = {"etag": '"e"', "last-modified": "Sat, 28 Nov 2026 09:00:00 GMT", "x-ms-version": "2023-11-03"}


@dataclass
class Seen:
    """The requests of a server: kind, target, headers with small names, body."""

    url: str = ""
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def headers(self, kind: str) -> dict[str, str]:
        """The headers of the first request of a kind."""
        return next(headers for seen, _, headers, _ in self.requests if seen == kind)


def kind_of(method: str, target: str) -> str:
    query = parse_qs(urlsplit(target).query, keep_blank_values=True)
    return f"{method} {next((key for key in (*ANSWERS, 'partNumber') if key in query), '')}".strip()


@contextmanager
def recording_server(context: ssl.SSLContext | None = None) -> Iterator[Seen]:
    """Serve both protocols far enough for one object, on 127.0.0.1."""
    seen = Seen()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            kind = kind_of(self.command, self.path)
            seen.requests.append((kind, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            answer = ANSWERS.get(kind.partition(" ")[2], b"body")
            if "/token" in self.path:
                answer = b'{"access_token": "of-the-login", "token_type": "Bearer", "expires_in": 3600}'
            made = 201 if self.command == "PUT" and "ms" in " ".join(self.headers) else 200
            self.send_response(403 if self.command == "CONNECT" else made)
            for name, value in {**HEADERS, "content-length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_PUT = do_HEAD = do_POST = do_DELETE = do_CONNECT = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    seen.url = f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def no_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_clients, "MAX_RETRIES", 0)


@pytest.fixture
def server() -> Iterator[Seen]:
    with recording_server() as seen:
        yield seen


def opened(uri: str, conf: dict[str, str]) -> ObjectStorage:
    assert only_hadoop(uri, conf) is None
    return ObjectStorage.open(uri, store_settings(uri, conf, {}), RequestLimits(15, 15, 0))


def s3_conf(url: str, **more: str) -> dict[str, str]:
    keys = {"endpoint": url, "access.key": "key", "secret.key": SECRET}
    return {f"{S3A}{key.replace('__', '.')}": value for key, value in {**keys, **more}.items()}


def use(storage: ObjectStorage, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each request that the product makes of a store: whole, in parts, looks, listings, deletions."""
    part_bytes = 5 << 20
    (folder / "f").write_bytes(b"rows")
    (folder / "large").write_bytes(bytes(part_bytes + 1))
    storage.write("a", b"1")
    storage.upload(str(folder / "f"), "b")
    with monkeypatch.context() as large:
        large.setattr(object_storage, "ONE_PUT_BYTES", part_bytes)
        large.setattr(object_storage, "PART_BYTES", part_bytes)
        storage.upload(str(folder / "large"), "c")
    storage.read("a")
    storage.head("a")
    storage.listed("")
    storage.remove("a")


ALL = ("PUT", "GET", "HEAD", "GET list-type", "POST uploads", "PUT uploadId", "POST uploadId", "POST delete")
WRITES = ("PUT", "POST uploads")


@pytest.mark.parametrize(
    ("conf", "header", "value", "kinds"),
    [
        ({"requester__pays__enabled": "TRUE"}, "x-amz-request-payer", "requester", ALL),
        ({"encryption__algorithm": "AES256"}, "x-amz-server-side-encryption", "AES256", WRITES),
        ({"encryption__algorithm": "SSE-KMS"}, "x-amz-server-side-encryption", "aws:kms", WRITES),
        ({"encryption__algorithm": "DSSE-KMS"}, "x-amz-server-side-encryption", "aws:kms:dsse", WRITES),
        (
            {"bucket__lake__encryption__algorithm": "SSE-KMS", "encryption__key": "arn:aws:kms:eu-west-1:1:key/k"},
            "x-amz-server-side-encryption-aws-kms-key-id", "arn:aws:kms:eu-west-1:1:key/k", WRITES,
        ),
        (
            {"server-side-encryption-algorithm": "SSE-C", "server-side-encryption__key": CUSTOMER_KEY},
            "x-amz-server-side-encryption-customer-key", CUSTOMER_KEY, (*WRITES, "GET", "HEAD", "PUT uploadId"),
        ),
    ],
    ids=["requester pays", "SSE-S3", "SSE-KMS", "DSSE-KMS", "SSE-KMS with a key", "SSE-C by its former name"],
)  # fmt: skip
def test_a_setting_of_s3a_is_a_header_of_each_request_that_needs_it(
    server: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    conf: dict[str, str], header: str, value: str, kinds: tuple[str, ...],
) -> None:  # fmt: skip
    use(opened("s3a://lake", s3_conf(server.url, **conf)), tmp_path, monkeypatch)
    assert {kind for kind, *_ in server.requests} == set(ALL)
    with_header = {kind for kind, _, headers, _ in server.requests if headers.get(header) == value}
    assert with_header == set(kinds)
    assert all(header not in headers or header in headers["authorization"] for _, _, headers, _ in server.requests), (
        "signed"
    )


def test_without_settings_none_of_these_is_sent(server: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(opened("s3a://lake", s3_conf(server.url)), tmp_path, monkeypatch)
    for _, _, headers, _ in server.requests:
        assert not [name for name in headers if "payer" in name or "encryption" in name or name.startswith("proxy")]
        assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=key/")
        assert SECRET not in str(headers)


def test_nobody_logs_in_where_the_provider_is_the_anonymous_one(server: Seen) -> None:
    provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    opened("s3a://lake", s3_conf(server.url, aws__credentials__provider=provider)).read("a")
    assert "authorization" not in server.headers("GET")


def test_a_server_without_bulk_deletion_is_sent_single_ones(server: Seen) -> None:
    opened("s3a://lake", s3_conf(server.url, multiobjectdelete__enable="false")).remove("a")
    assert [kind for kind, *_ in server.requests] == ["DELETE"]


def test_requests_take_the_proxy_and_log_in_there(server: Seen) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    proxy = {"proxy__host": host, "proxy__port": port, "proxy__username": "us:er", "proxy__password": "p@ss/w%rd"}
    conf = s3_conf("http://store.example:9000", **proxy)
    opened("s3a://lake", conf).read("a")
    [(_, target, headers, _)] = server.requests
    assert target == "http://lake.store.example:9000/a"
    assert base64.b64decode(headers["proxy-authorization"].removeprefix("Basic ")) == b"us:er:p@ss/w%rd"
    assert "p@ss" not in repr(store_settings("s3a://lake", conf, {}))


def test_the_proxy_of_google_is_taken(server: Seen) -> None:
    google = "spark.hadoop.fs.gs."
    conf = {f"{google}proxy.address": server.url.removeprefix("http://"), f"{google}auth.type": "UNAUTHENTICATED"}
    conf[f"{google}storage.root.url"] = "http://store.example:4443"
    opened("gs://lake", conf).read("a")
    [(_, target, headers, _)] = server.requests
    assert target.startswith("http://store.example:4443/")
    assert "authorization" not in headers


def test_a_proxy_that_is_away_shows_no_password() -> None:
    proxy = {"proxy__host": "127.0.0.1", "proxy__port": "9", "proxy__username": "u", "proxy__password": SECRET}
    with pytest.raises(StoreFailure) as failed:
        opened("s3a://lake", s3_conf("http://store.example:9000", **proxy)).read("a")
    assert failed.value.code == UNREACHABLE
    assert SECRET not in f"{failed.value} {failed.value.found} {failed.value.help}"


def test_a_client_of_azure_logs_in_where_hadoop_does(server: Seen) -> None:
    host = "acme.dfs.core.windows.net"
    conf = {
        f"{AZURE}account.auth.type.{host}": "OAuth",
        f"{AZURE}account.oauth.provider.type.{host}": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
        f"{AZURE}account.oauth2.client.id.{host}": "the-client",
        f"{AZURE}account.oauth2.client.secret.{host}": SECRET,
        f"{AZURE}account.oauth2.client.endpoint.{host}": f"{server.url}/the-tenant/oauth2/token",
        # What Hadoop would not use with this way to log in.
        f"{AZURE}account.key.{host}": base64.b64encode(b"another").decode(),
        f"{AZURE}abfs.endpoint": server.url.removeprefix("http://"),
        f"{AZURE}always.use.https": "false",
    }
    opened(f"abfs://lake@{host}", conf).read("a")
    (login, target, _, body), (_, _, headers, _) = server.requests
    assert (login, target) == ("POST", "/the-tenant/oauth2/v2.0/token")
    assert {"client_id": ["the-client"], "client_secret": [SECRET]}.items() <= parse_qs(body.decode()).items()
    assert headers["authorization"] == "Bearer of-the-login"


@pytest.mark.parametrize("token", ["sv=2024&sig=a%2Bb%3D", "?sv=2024&sig=a%2Bb%3D"])
def test_a_signature_of_azure_counts_with_and_without_its_question_mark(server: Seen, token: str) -> None:
    conf = {f"{AZURE}sas.fixed.token": token, f"{AZURE}abfs.endpoint": server.url.removeprefix("http://")}
    opened("abfs://lake@acme.dfs.core.windows.net", {**conf, f"{AZURE}always.use.https": "false"}).read("a")
    [(_, target, _, _)] = server.requests
    assert parse_qs(urlsplit(target).query) == {"sv": ["2024"], "sig": ["a+b="]}


@pytest.mark.parametrize(
    ("variables", "conf", "seen"),
    [
        ({"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}, {"sas.fixed.token": "sv=1&sig=s"}, ""),
        ({"AZURE_STORAGE_TOKEN": "foreign"}, {"account.key": "a2V5"}, "SharedKey"),
        ({"AZURE_FEDERATED_TOKEN_FILE": "/x", "AZURE_CLIENT_ID": "i", "AZURE_TENANT_ID": "t"},
         {"sas.fixed.token": "sv=1&sig=s"}, ""),
    ],
)  # fmt: skip
def test_the_environment_does_not_log_in_to_azure_where_a_setting_does(
    server: Seen, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], conf: dict[str, str], seen: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    azure = {**conf, "abfs.endpoint": server.url.removeprefix("http://"), "always.use.https": "false"}
    of_spark = {f"{AZURE}{key}": value for key, value in azure.items()}
    opened("abfs://lake@acme.dfs.core.windows.net", of_spark).read("a")
    [(_, target, headers, _)] = server.requests
    assert headers.get("authorization", "").partition(" ")[0] == seen
    assert ("sig=s" in target) == (seen == "")


def test_the_environment_adds_nothing_to_settings_of_s3(server: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SKIP_SIGNATURE", "AWS_S3_EXPRESS", "AWS_SSE_BUCKET_KEY_ENABLED"):
        monkeypatch.setenv(name, "true")
    for name in ("AWS_SESSION_TOKEN", "AWS_SSE_KMS_KEY_ID", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(name, "http://foreign")
    opened("s3a://lake", s3_conf(server.url, encryption__algorithm="AES256")).write("a", b"1")
    [(_, _, headers, _)] = server.requests
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=key/")
    assert "foreign" not in str(headers)
    assert headers["x-amz-server-side-encryption"] == "AES256"
    assert "x-amz-server-side-encryption-bucket-key-enabled" not in headers


def test_a_role_that_is_refused_is_not_replaced_by_that_of_the_machine(
    server: Seen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("token")
    for name, value in {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
        "AWS_ENDPOINT_URL_STS": "https://127.0.0.1:1", "AWS_METADATA_ENDPOINT": server.url,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreFailure, match="POST"):
        opened("s3a://lake", {f"{S3A}endpoint": server.url, f"{S3A}path.style.access": "true"}).read("a")
    assert server.requests == []
    monkeypatch.delenv("AWS_WEB_IDENTITY_TOKEN_FILE")
    with pytest.raises(StoreFailure):
        opened("s3a://lake", {f"{S3A}endpoint": server.url, f"{S3A}path.style.access": "true"}).read("a")
    assert server.requests != [], "there the machine is asked"


def test_an_upload_has_no_checksum_that_older_servers_refuse(server: Seen, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"rows")
    opened("s3a://lake", s3_conf(server.url)).upload(str(tmp_path / "f"), "b")
    [(_, _, headers, _)] = server.requests
    assert headers["if-none-match"] == "*"
    assert not {"content-encoding", "x-amz-trailer", "x-amz-sdk-checksum-algorithm"} & set(headers)


def test_another_cloud_of_azures_is_asked_at_its_own_host(server: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", server.url)
    host = "acme.dfs.core.chinacloudapi.cn"
    with pytest.raises(StoreFailure):
        opened(f"abfss://lake@{host}/state", {f"{AZURE}account.key.{host}": "a2V5"}).read("a")
    assert {(kind, target) for kind, target, *_ in server.requests} == {
        ("CONNECT", "acme.blob.core.chinacloudapi.cn:443")
    }


def certificate_of_our_own(folder: Path) -> ssl.SSLContext:
    """A server's context with a certificate that nobody trusts, which lies in ``ca.pem``."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "company")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


def test_a_certificate_that_only_java_may_trust_is_no_store_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording_server(certificate_of_our_own(tmp_path)) as server:
        with pytest.raises(StoreFailure) as failed:
            opened("s3a://lake", s3_conf(server.url)).read("a")
        assert (failed.value.code, failed.value.gave_no_answer) == (NOT_TRUSTED, False)
        assert failed.value.found.endswith("(UnknownIssuer)")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        found: Any = opened("s3a://lake", s3_conf(server.url)).read("a")
        assert found.data == b"body"


def test_a_file_is_sent_without_a_copy_of_it_in_memory(server: Seen, tmp_path: Path) -> None:
    body = os.urandom(3 << 20)
    (tmp_path / "file").write_bytes(body)
    (tmp_path / "empty").write_bytes(b"")
    storage = opened("s3a://lake", s3_conf(server.url))
    storage.upload(str(tmp_path / "file"), "file")
    storage.upload(str(tmp_path / "empty"), "empty")
    assert [sent for kind, _, _, sent in server.requests if kind == "PUT"] == [body, b""]
