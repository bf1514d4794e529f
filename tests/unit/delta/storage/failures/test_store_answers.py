"""What an object store answered, from chains of exceptions as the connectors raised them, to codes with a way out."""

from __future__ import annotations

import pytest

from maintainer.delta.storage.failures.machine_failures import storage_error
from maintainer.delta.storage.failures.store_answers import (
    Failure,
    refuses_credentials,
    says_busy,
    says_no_reason,
    store_error,
)

SDK = "software.amazon.awssdk.services.s3.model."


class Raised(Failure):
    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(type_name, "", message)


def s3(status: int, code: str, words: str = "the message", outer: str = "AccessDeniedException") -> list[Raised]:
    """The two exceptions that a LIST on S3 ends with: Hadoop's, and the SDK's within."""
    answer = f"{words} (Service: S3, Status Code: {status}, Request ID: 1)"
    return [
        Raised(outer, f"s3a://lake/t: listObjects() on s3a://lake/t: {SDK}S3Exception: {answer}:{code}"),
        Raised("S3Exception", answer),
    ]


@pytest.mark.parametrize(
    ("chain", "code", "found"),
    [
        (s3(403, "InvalidAccessKeyId"), "T440", "the message (status 403, InvalidAccessKeyId)"),
        (s3(403, "SignatureDoesNotMatch"), "T440", "the message (status 403, SignatureDoesNotMatch)"),
        (s3(404, "XAdminUserNotFound", outer="FileNotFoundException"),
         "T440", "the message (status 404, XAdminUserNotFound)"),
        (s3(403, "ExpiredToken"), "T440", "the message (status 403, ExpiredToken)"),
        (s3(403, "RequestTimeTooSkewed"), "T440", "the message (status 403, RequestTimeTooSkewed)"),
        (s3(403, "AccessDenied"), "T405", "the message (Service: S3, Status Code: 403, Request ID: 1)"),
        (s3(404, "NoSuchBucket", outer="UnknownStoreException"), "T442", "the message (status 404, NoSuchBucket)"),
        (
            s3(400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-1'"),
            "T443",
            "the region 'us-east-1' is wrong; expecting 'eu-west-1' (status 400, AuthorizationHeaderMalformed)",
        ),
        (s3(503, "SlowDown", outer="AWSServiceThrottledException"), "T444", "the message (status 503, SlowDown)"),
        (s3(500, "InternalError", outer="AWSStatus500Exception"), "T444", "the message (status 500, InternalError)"),
        ([Raised("ConnectException", "listObjects() on s3a://lake/t: ..."), Raised("E", "Connect to h:5 failed: no")],
         "T435", "Connect to h:5 failed: no"),
        ([Raised("HttpChannelEOFException", "x"), Raised("NoHttpResponseException", "it failed to respond")],
         "T435", "it failed to respond"),
        ([Raised("AWSClientIOException", "x"), Raised("SSLHandshakeException", "PKIX path building failed")],
         "T446", "PKIX path building failed"),
        (s3(501, "NotImplemented", outer="AWSServiceIOException"), "T445", "the message (status 501, NotImplemented)"),
        (s3(405, "MethodNotAllowed", outer="AWSS3IOException"), "T445", "the message (status 405, MethodNotAllowed)"),
        ([Raised("AWSClientIOException", "getFileStatus"), Raised("SdkClientException", "Unable to marshall")],
         "T445", "Unable to marshall"),
    ],
)  # fmt: skip
def test_each_answer_of_s3_has_a_code_of_its_own(chain: list[Raised], code: str, found: str) -> None:
    error = storage_error(chain, "s3a://lake/t")
    assert error is not None
    assert (error.code, error.found, error.where) == (code, found, "s3a://lake/t")
    assert ("s3:ListBucket" in (error.help or "")) == (code == "T405")


GOOGLE = "POST https://storage.googleapis.com/upload/storage/v1/b/lake/o?name=t/_delta_log/1.json\\n"


@pytest.mark.parametrize(
    "said",
    [
        f"429 Too Many Requests\n{GOOGLE}",
        f"503 Service Unavailable\n{GOOGLE}",
        'Error accessing gs://lake/t/_delta_log/1.json: "reason" : "rateLimitExceeded"',
        'Error accessing gs://lake/t/_delta_log/1.json: "reason" : "backendError"',
    ],
)
def test_google_is_busy_in_words_of_its_own(said: str) -> None:
    chain = [Raised("IOException", "Error accessing gs://lake/t"), Raised("GoogleJsonResponseException", said)]
    error = storage_error(chain, "gs://lake/t")
    assert error is not None
    assert (error.code, says_busy(chain)) == ("T444", True)


@pytest.mark.parametrize(
    "place", ["abfss://lake@a.dfs.core.windows.net/sales3/t", "gs://lake/sales3/t", "gs://s3-lake/t"]
)
def test_a_folder_with_s3_in_its_name_is_no_store_of_amazons(place: str) -> None:
    refused = [Raised("AccessDeniedException", f"{place}: AuthenticationFailed, 401 Unauthorized")]
    away = [Raised("IOException", place), Raised("ConnectException", "Connection refused")]
    for chain, code in ((refused, "T440"), (away, "T435")):
        error = storage_error(chain, place)
        assert error is not None
        assert error.code == code
        assert "AWS" not in str(error.help)
        assert "s3a" not in str(error.help)


def test_a_region_that_the_answer_names_stands_in_the_line_to_write() -> None:
    redirect = [
        Raised(
            "AWSRedirectException",
            "Received permanent redirect response to region [eu-west-1].  This likely indicates that the S3 region "
            "configured does not match: the message (Service: S3, Status Code: 301, Request ID: 1)",
        )
    ]
    error = store_error(redirect, "t")
    assert error is not None
    assert (error.code, error.help) == (
        "T443",
        "maintainer.yml: `spark: {conf: {spark.hadoop.fs.s3a.endpoint.region: eu-west-1}}`",
    )
    unnamed = store_error(s3(301, "PermanentRedirect"), "t")
    assert unnamed is not None
    assert "REGION_OF_THE_BUCKET" in (unnamed.help or "")


NO_TAG = [
    Failure(
        "SparkException", "FAILED_READ_FILE", "Encountered error while reading file s3://lake/t/_delta_log/0.json."
    ),
    Raised("NoVersionAttributeException", "`s3a://lake/t/_delta_log/0.json': Change detection policy requires ETag"),
]


def test_a_store_without_tags_is_named_as_the_cause_and_never_the_log() -> None:
    error = storage_error(NO_TAG, "s3a://lake/t")
    assert error is not None
    assert (error.code, error.found) == ("T445", NO_TAG[1].message)
    assert "tag" in error.what
    assert "spark.hadoop.fs.s3a.change.detection.version.required: false" in (error.help or "")


HEAD_400 = [
    Raised("AWSBadRequestException", f"getFileStatus on s3a://lake/t: {SDK}S3Exception: Bad Request "
           "(Service: S3, Status Code: 400, Request ID: 1):null"),
    Raised("S3Exception", "Bad Request (Service: S3, Status Code: 400, Request ID: 1)"),
]  # fmt: skip


def unknown_host(host: str) -> list[Raised]:
    """What Hadoop raises where the host of a request has no address."""
    return [
        Raised(
            "UnknownHostException", f"listObjects() on s3://lake/t/_delta_log: {SDK}SdkClientException: Received an"
        ),
        Raised("SdkClientException", f"Unable to execute HTTP request: {host}"),
        Raised("UnknownHostException", host),
    ]


@pytest.mark.parametrize(
    ("chain", "code", "named"),
    [
        (HEAD_400, "T445", True),
        (s3(501, "NotImplemented", outer="AWSServiceIOException"), "T445", False),
        (s3(404, "NoSuchBucket", outer="UnknownStoreException"), "T442", True),
        (unknown_host("lake.storage.example.org"), "T435", True),
        (unknown_host("storage.example.org"), "T435", False),
        (unknown_host("lakes.example.org"), "T435", False),
    ],
)
def test_where_path_style_may_be_missing_the_setting_is_named(chain: list[Raised], code: str, named: bool) -> None:
    error = storage_error(chain, "sales.orders")
    assert error is not None
    assert error.code == code
    assert ("spark.hadoop.fs.s3a.path.style.access: true" in str(error.help)) is named


@pytest.mark.parametrize(
    ("chain", "no_reason", "credentials"),
    [
        (HEAD_400, True, False),
        (s3(403, "null"), True, False),
        (s3(403, "AccessDenied"), False, False),
        (s3(403, "SignatureDoesNotMatch"), False, True),
        (s3(404, "XAdminUserNotFound", outer="FileNotFoundException"), False, True),
        (s3(404, "null", outer="FileNotFoundException"), False, False),
        ([Raised("FileNotFoundException", "No such file or directory: s3://lake/InvalidToken")], False, False),
    ],
)
def test_an_answer_without_a_reason_is_told_from_one_with(
    chain: list[Raised], no_reason: bool, credentials: bool
) -> None:
    assert (says_no_reason(chain), refuses_credentials(chain)) == (no_reason, credentials)


def test_no_credentials_at_all_are_told_from_wrong_ones() -> None:
    text = "No AWS Credentials provided by TemporaryAWSCredentialsProvider SimpleAWSCredentialsProvider"
    error = storage_error([Raised("AccessDeniedException", f"s3a://lake/: {text}")], "t")
    assert error is not None
    assert error.code == "T441"
    assert text in (error.found or "")
    assert "AWS_ACCESS_KEY_ID" in (error.help or "")


def test_a_clock_that_is_wrong_needs_another_clock_and_no_other_key() -> None:
    error = store_error(s3(403, "RequestTimeTooSkewed"), "t")
    assert error is not None
    assert "set-ntp" in (error.help or "")


@pytest.mark.parametrize(
    "chain",
    [
        s3(404, "NoSuchKey", "The specified key does not exist.", outer="FileNotFoundException"),
        [Raised("IllegalStateException", "no store at all")],
        [Raised("IOException", "gs://lake/SlowDown/NoSuchBucket/e=ServerBusy/PermanentRedirect: no")],
        [],
    ],
)
def test_anything_else_is_left_to_others(chain: list[Raised]) -> None:
    assert store_error(chain, "t") is None


LOG = "getFileStatus on s3a://lake/t/_delta_log/00000000000000000001.json: "


@pytest.mark.parametrize(
    "chain",
    [
        s3(501, "NotImplemented", LOG),
        s3(400, "InvalidRequest", LOG),
        s3(403, "AccessDenied", LOG),
        s3(503, "SlowDown", LOG),
        [Raised("AWSClientIOException", LOG), Raised("SSLException", "Unsupported or unrecognized SSL message")],
        [Raised("AWSClientIOException", LOG), Raised("SdkClientException", "Unable to execute HTTP request")],
        [Raised("HttpChannelEOFException", LOG), Raised("NoHttpResponseException", "failed to respond")],
    ],
)
def test_no_answer_about_a_file_of_the_log_is_taken_for_a_damaged_log(chain: list[Raised]) -> None:
    """Every request names such a file. Whoever then compares the log with a backup looks in the wrong place."""
    error = storage_error(chain, "t")
    assert error is not None
    assert error.help is not None
    assert "backup" not in error.help


@pytest.mark.parametrize("status", [404, 412, 416])
def test_an_answer_that_says_something_of_the_file_is_left_to_those_who_read_it(status: int) -> None:
    assert storage_error(s3(status, "Other", outer="RemoteFileChangedException"), "t") is None


@pytest.mark.parametrize(
    ("message", "code", "says"),
    [
        ("The specified container does not exist", "T442", "`roots:` or `state:`"),
        ("Operation failed: 401 Unauthorized", "T440", "object-stores.md"),
    ],
)
def test_other_stores(message: str, code: str, says: str) -> None:
    error = store_error([Raised("AbfsRestOperationException", message)], "abfss://c@a.dfs.core.windows.net/t")
    assert error is not None
    assert (error.code, says in (error.help or "")) == (code, True)


@pytest.mark.parametrize(
    ("message", "help"),
    [
        ("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", "storage: [s3]"),
        ("Class org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem not found", "storage: [azure]"),
        ("Class com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem not found", "storage: [gcs]"),
        ("Class org.other.XFileSystem not found", "spark: {packages: [...]}"),
    ],
)
def test_a_missing_connector_is_one_line_in_the_project(message: str, help: str) -> None:
    error = storage_error([Raised("RuntimeException", "x"), Raised("ClassNotFoundException", message)], "t")
    assert error is not None
    assert error.code == "T436"
    assert help in (error.help or "")
