"""Why a request to the store of a state failed: each answer gets the code and the advice of its true cause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from maintainer.engine.store import store_clients
from maintainer.engine.store.cloud_settings import store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import RequestLimits
from maintainer.engine.store.store_failures import StoreFailure, store_failure

S3A = "spark.hadoop.fs.s3a."
ONCE = RequestLimits(15, 15, 0)


class Answer(BaseHTTPRequestHandler):
    """Answers every request with one status and one document."""

    status, document = 200, b""

    def do_GET(self) -> None:
        """Answer."""
        self.do_PUT()

    def do_PUT(self) -> None:
        """Read what was sent, and answer."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(self.status)
        self.send_header("content-length", str(len(self.document)))
        self.end_headers()
        self.wfile.write(self.document)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(store_clients, "MAX_RETRIES", 0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("status", "code", "answer", "advice"),
    [
        (301, "E691", "PermanentRedirect", "endpoint.region: REGION_OF_THE_BUCKET"),
        (400, "E691", "AuthorizationHeaderMalformed", "endpoint.region: eu-central-1"),
        (400, "E682", "ExpiredToken", "set the credentials"),
        (400, "E682", "InvalidToken", "set the credentials"),
        (400, "E682", "TokenRefreshRequired", "set the credentials"),
        (400, "E681", "MalformedXML", "check the endpoint"),
        (403, "E682", "SignatureDoesNotMatch", "set the credentials"),
        (403, "E682", "RequestTimeTooSkewed", "timedatectl"),
        (401, "E682", "Unauthorized", "set the credentials"),
        (404, "E683", "NoSuchBucket", "make the bucket"),
        (501, "E684", "NotImplemented", "update the server"),
        (500, "E693", "InternalError", "run the command again later"),
        (503, "E693", "SlowDown", "run the command again later"),
    ],
)
def test_an_answer_of_s3(
    url: str, monkeypatch: pytest.MonkeyPatch, status: int, code: str, answer: str, advice: str
) -> None:
    text = "the region 'us-east-1' is wrong; expecting 'eu-central-1'" if code == "E691" else "no"
    monkeypatch.setattr(Answer, "status", status)
    monkeypatch.setattr(Answer, "document", f"<Error><Code>{answer}</Code><Message>{text}</Message></Error>".encode())
    conf = {f"{S3A}endpoint": url, f"{S3A}access.key": "key", f"{S3A}secret.key": "secret"}
    storage = ObjectStorage.open("s3://lake/state", store_settings("s3://lake/state", conf), ONCE)
    with pytest.raises(StoreFailure) as refused:
        storage.write("a", b"1")
    assert (refused.value.code, advice in refused.value.help) == (code, True), refused.value.found
    assert str(status) in refused.value.found or status == 301
    assert status == 301 or refused.value.found.endswith(f", {answer}: {text}"), refused.value.found


@pytest.mark.parametrize("is_create", [False, True])
@pytest.mark.parametrize(
    "document",
    [b"", b"<html><body>Not Found</body></html>", b"<Error><Code>NoSuchKey</Code></Error>",
     b"<Error><Code>NoSuchBucket</Code></Error>"],
)  # fmt: skip
def test_what_is_missing_for_a_write_is_the_bucket(
    url: str, monkeypatch: pytest.MonkeyPatch, document: bytes, is_create: bool
) -> None:
    monkeypatch.setattr(Answer, "status", 404)
    monkeypatch.setattr(Answer, "document", document)
    conf = {f"{S3A}endpoint": url, f"{S3A}access.key": "key", f"{S3A}secret.key": "secret"}
    storage = ObjectStorage.open("s3://lake/state", store_settings("s3://lake/state", conf), ONCE)
    with pytest.raises(StoreFailure) as refused:
        storage.replace("a", b"1", None) if is_create else storage.write("a", b"1")
    assert (refused.value.code, "404" in refused.value.found) == ("E683", True), refused.value.found


@pytest.mark.parametrize(
    "said",
    [
        "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 2.01s - timed out",
        "Generic MicrosoftAzure error: Error performing token request: Error performing GET "
        "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2019-08-01 in 20s",
        "Generic GCS error: Error performing token request: Error performing GET "
        "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token in 1ms",
    ],
)
def test_who_asks_the_machine_for_credentials_has_no_others(said: str) -> None:
    failure = store_failure(OSError(said))
    assert (failure.code, failure.what) == ("E692", "there are no credentials for the store of the state")
    service = re.search("http://[a-z0-9.]+", said)
    assert service is not None
    assert failure.found == (
        f"no credentials in the settings or the environment, and {service[0]}, where a cloud gives a machine its role, "
        "gave no answer"
    )
    refused = store_failure(OSError(f"{said} - Server returned non-2xx status code: 404 Not Found: no role"))
    assert (refused.code, refused.found.rpartition(", ")[2]) == ("E692", "answered with status 404")
    assert (store_failure(OSError(said)).may_pass, refused.may_pass) == (True, False)
    for status in ("429 Too Many Requests", "503 Service Unavailable"):
        later = store_failure(OSError(f"{said} - Server returned non-2xx status code: {status}: later"))
        assert (later.code, later.may_pass) == ("E692", True), "a proxy answers so where there is no such service"


def test_a_duration_is_no_status() -> None:
    assert store_failure(OSError("Error performing PUT http://store/a in 1.403401ms - timed out")).code == "E681"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            "Generic S3 error: Error performing PUT http://s/b/a in 5.9s, after 6 retries, max_retries: 6, "
            "retry_timeout: 20s - HTTP error: error sending request",
            "PUT http://s/b/a, asked 7 times: error sending request",
        ),
        (
            "Error performing GET http://s/b in 3ms, after 0 retries, max_retries: 1, retry_timeout: 2s  - "
            "Server returned non-2xx status code: 503 Slow Down: <Error><Code>SlowDown</Code></Error>",
            "GET http://s/b: Server returned non-2xx status code: 503 Slow Down, SlowDown",
        ),
    ],
)
def test_what_was_asked_for_is_said_without_the_words_of_the_client(said: str, found: str) -> None:
    assert store_failure(OSError(said)).found == found


def test_an_error_without_words_has_the_name_of_its_class() -> None:
    assert store_failure(TimeoutError()).found == "TimeoutError"


def test_what_the_system_said_of_a_connection_is_told() -> None:
    for structure in ('Os { code: 111, message: "Connection refused" }', 'Custom { error: "Connection refused" }'):
        failure = store_failure(OSError(f"error sending request\n\nDebug source:\n{structure}"))
        assert failure.found == "error sending request (Connection refused)"
