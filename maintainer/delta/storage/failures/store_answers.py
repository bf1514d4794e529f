"""Recognize what an object store answered: no or wrong credentials, no bucket, another region, too busy. Pure.

S3 says why in a code of its own, which Hadoop puts behind the status; an answer to HEAD has no body, so no code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from maintainer.engine.store.store_failures import NAMED_REGION, SAYS_BUSY, SAYS_NO_BUCKET, SAYS_OTHER_REGION
from maintainer.errors import StoreRefusal, StoreSilent, TableError


@dataclass(frozen=True, slots=True)
class Failure:
    """One throwable: simple class name, error class (or empty), message without stack trace."""

    type_name: str
    condition: str
    message: str


class StoreAway(Exception):
    """An object store gave no answer, each time that it was asked. The message names the bucket and what happened."""


class RefusedAlike(Exception):
    """An object store refused what it would refuse to each client of the same settings. The message says why."""


class BucketMissing(RefusedAlike):
    """An object store has no such bucket or container. The message names it and has the store's answer."""


class KeysRefused(RefusedAlike):
    """An object store does not know the keys, or their signature. The message names the bucket and what it answered."""


class KeysMissing(KeysRefused):
    """There are no keys for an object store, and Hadoop would look for them nowhere else. The message says where."""


class StoreBusy(StoreAway):
    """An object store said that it is too busy, each time that it was asked."""


_NO_CREDENTIALS = re.compile(
    r"No AWS Credentials provided|Unable to load credentials|NoAuthWithAWS|CredentialInitializationException"
    r"|No credentials found|Your default credentials were not found|Could not load the default credentials"
)
_WRONG_CREDENTIALS = re.compile(
    r"\b(?:InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|InvalidClientTokenId|TokenRefreshRequired"
    r"|XAdminUserNotFound|RequestTimeTooSkewed|AuthenticationFailed|InvalidAuthenticationInfo|invalid_grant)\b"
    r"|Status Code: 401|\b401 Unauthorized\b"
)
_WRONG_KEYS = re.compile(
    r"\b(?:InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|TokenRefreshRequired"
    r"|RequestTimeTooSkewed)\b"
)
_EXPIRED = re.compile(r"\b(?:ExpiredToken|TokenRefreshRequired)\b")
_CLOCK = "RequestTimeTooSkewed"
_SAID = re.compile(
    r"(?:\w+Exception: )*(?P<words>[^:()]+) \(Service: S3, Status Code: (?P<status>\d+)[^)]*\)(?::(?P<code>\w+))?"
)
"""An answer as Amazon's SDK and Hadoop write it: words, status, request, and behind them the code."""

_SAID_TO_OBSTORE = re.compile(r"status code: (?P<status>\d+)[^,]*, (?P<code>\w+): (?P<words>[^().]+)")

_ABOUT_THE_OBJECT = frozenset({"404", "412", "416"})
"""Not there, changed meanwhile, shorter than was asked for: answers that say something of a file, not of the store."""

PATH_STYLE = (
    "a store that is not Amazon's mostly needs `spark: {conf: {spark.hadoop.fs.s3a.path.style.access: true}}` in "
    "maintainer.yml"
)
_BAD_REQUEST = "400"

_NO_TAG = "NoVersionAttributeException"
_CLIENT = frozenset(
    {"AWSBadRequestException", "AWSClientIOException", "AWSS3IOException", "AWSServiceIOException", _NO_TAG}
)

_NO_FILE = re.compile(r"\bNoSuchKey\b")

S3_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN) where maintainer runs, or in "
    'maintainer.yml: `spark: {conf: {spark.hadoop.fs.s3a.access.key: "${env:...}", '
    'spark.hadoop.fs.s3a.secret.key: "${env:...}"}}`'
)
_OF_S3 = re.compile(r"\bs3[an]?://|Service: S3|S3AFileSystem|AWS|amazonaws")

_NAME_OF_THE_BUCKET = "the name in `table:` of a policy, or in `roots:` or `state:` of maintainer.yml"
_OTHER_CREDENTIALS = "docs/object-stores.md lists the settings of each store; write secrets as `${env:NAME}`"


def store_error(chain: Sequence[Failure], where: str) -> TableError | None:
    """Return the error for an answer of an object store; None for anything else.

    Args:
        chain: Failures, outermost first.
        where: The table, for the message.
    """
    text = "\n".join(f"{failure.type_name}: {failure.message}" for failure in chain)
    if _NO_FILE.search(text):
        return None
    is_s3 = names_s3(text)
    credentials = S3_CREDENTIALS if is_s3 else _OTHER_CREDENTIALS

    def refusal(what: str, *, code: str, help: str) -> StoreRefusal:
        return StoreRefusal(what, code=code, where=where, found=_answer(chain), help=help)

    if _NO_CREDENTIALS.search(text) or any(failure.type_name == KeysMissing.__name__ for failure in chain):
        return refusal("there are no credentials for the object store", code="T441", help=credentials)
    if _WRONG_CREDENTIALS.search(text):
        way_out = "set the clock of this machine: sudo timedatectl set-ntp true" if _CLOCK in text else credentials
        wrong = refusal("the object store does not accept these credentials", code="T440", help=way_out)
        wrong.may_pass = _EXPIRED.search(text) is not None
        return wrong
    if SAYS_NO_BUCKET.search(text) or any(failure.type_name == BucketMissing.__name__ for failure in chain):
        address = f", or the address of the store: `spark.hadoop.fs.s3a.endpoint`; {PATH_STYLE}" if is_s3 else ""
        return refusal(
            "there is no such bucket or container on the object store",
            code="T442", help=f"correct {_NAME_OF_THE_BUCKET}{address}",
        )  # fmt: skip
    if SAYS_OTHER_REGION.search(text):
        region = NAMED_REGION.search(text)
        name = region[1] if region else "REGION_OF_THE_BUCKET"
        return refusal(
            "the bucket is in another region than the one that was asked",
            code="T443", help=f"maintainer.yml: `spark: {{conf: {{spark.hadoop.fs.s3a.endpoint.region: {name}}}}}`",
        )  # fmt: skip
    if SAYS_BUSY.search(text) or any(failure.type_name == StoreBusy.__name__ for failure in chain):
        way_out = "run the command again later, or with fewer tables at once: -j 1"
        what = "the object store answers that it is too busy, or fails"
        return StoreSilent(what, code="T444", where=where, found=_answer(chain), help=way_out)
    return None


def client_error(chain: Sequence[Failure], where: str) -> TableError | None:
    """Return the error for any other answer of S3, or failure of its client, that says nothing of a file; else None.

    Each request names a file of the log: without this it would look as if the log were damaged.
    """
    is_untagged = any(failure.type_name == _NO_TAG for failure in chain)
    statuses = {said["status"] for failure in chain if (said := _SAID.search(failure.message)) is not None}
    if statuses & _ABOUT_THE_OBJECT or not (statuses or {failure.type_name for failure in chain} & _CLIENT):
        return None
    raised = StoreRefusal if _BAD_REQUEST in statuses else TableError
    what = "the object store refused a request, or its client failed"
    way_out = (f"{PATH_STYLE}; else " if _BAD_REQUEST in statuses else "") + (
        "check what the store supports and the settings `spark.hadoop.fs.s3a.*` in maintainer.yml; this says nothing "
        "of the table's content"
    )
    if is_untagged:
        what = "the object store names no tag of an object, and Hadoop's client reads none without"
        way_out = (
            "let the store give each object an ETag; or, in maintainer.yml: `spark: {conf: "
            "{spark.hadoop.fs.s3a.change.detection.version.required: false}}`, and Spark does not notice a file that "
            "is replaced while it is read; this says nothing of the table's content"
        )
    return raised(what, code="T445", where=where, found=_answer(chain), help=way_out)


def names_s3(text: str) -> bool:
    """Tell whether a failure is one of S3; the names of many folders hold these two signs."""
    return _OF_S3.search(text) is not None


def says_busy(chain: Sequence[Failure]) -> bool:
    """Tell whether a store refused a request since there are too many, or failed for a moment."""
    return any(SAYS_BUSY.search(f"{failure.type_name}: {failure.message}") for failure in chain)


def says_no_reason(chain: Sequence[Failure]) -> bool:
    """Tell whether S3 refused a request without a word why: an answer to HEAD has no body."""
    answers = [said for failure in chain if (said := _SAID.search(failure.message)) is not None]
    coded = any(said["code"] not in (None, "null") for said in answers)
    return not coded and any(said["status"] in ("400", "401", "403") for said in answers)


def names_wrong_keys(answer: str) -> bool:
    """Tell whether S3 says in its answer that it knows no such keys, or that their signature is wrong."""
    return _WRONG_KEYS.search(answer) is not None


def refuses_credentials(chain: Sequence[Failure]) -> bool:
    """Tell whether S3 names the credentials as the reason, with whatever status: some servers answer 404."""
    answers = (_SAID.search(failure.message) for failure in chain)
    return any(said is not None and _WRONG_CREDENTIALS.fullmatch(said["code"] or "") for said in answers)


def _answer(chain: Sequence[Failure]) -> str:
    """Return what the store said, on one line: for S3 its words, its status and its code."""
    messages = [" ".join(failure.message.split()) for failure in chain if failure.message]
    for text in messages:
        said = _SAID.search(text) or _SAID_TO_OBSTORE.search(text)
        if said is not None:
            code = "" if said["code"] in (None, "null") else f", {said['code']}"
            return f"{said['words'].strip()} (status {said['status']}{code})"
    telling = next((text for text in messages if "redentials" in text), None)
    return (telling or (messages[-1] if messages else "no message"))[:300]
