"""Tell why a request to the store of a state failed: the code, what the store said, and what helps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from maintainer.errors import EnvironmentUnfit
from maintainer.errors.foreign_text import without_secrets

UNREACHABLE, REFUSED, NO_BUCKET, NO_CONDITIONS = "E681", "E682", "E683", "E684"
OTHER_REGION, NO_CREDENTIALS, BUSY, NOT_TRUSTED, TOO_MANY = "E691", "E692", "E693", "E694", "E695"

MAX_MESSAGE_CHARACTERS = 300

_CREDENTIALS = (
    "set the credentials of this cloud in the environment, or Spark's keys under `spark: conf:` in maintainer.yml, "
    "and let them read, write and list this place"
)
_PUBLISHED_LATER = "what was done is recorded on this machine, and the next command on it publishes it"
_HELP = {
    UNREACHABLE: "check the endpoint, `path.style.access` and the network, then run the command again; "
    f"{_PUBLISHED_LATER}",
    BUSY: f"run the command again later; {_PUBLISHED_LATER}",
    REFUSED: _CREDENTIALS,
    NO_BUCKET: "make the bucket or container, or correct `state:` in maintainer.yml",
    NO_CONDITIONS: "update the server, or name another place under `state:`; without conditional writes two runs at "
    "once would overwrite each other's records",
    OTHER_REGION: "maintainer.yml: `spark: {conf: {spark.hadoop.fs.s3a.endpoint.region: REGION_OF_THE_BUCKET}}`, or "
    "set AWS_REGION",
    NO_CREDENTIALS: _CREDENTIALS,
    NOT_TRUSTED: "let the system trust who signed it, or name a file in SSL_CERT_FILE that has its certificate beside "
    "those of the system; what Java trusts does not count here",
    TOO_MANY: "delete the objects there that are a week old: they belong to runs that are over; rows that wait for the "
    "ledger are made again by `maintainer ledger rebuild`",
}
_WHAT = {
    UNREACHABLE: "the store of the state cannot be reached",
    BUSY: "the store of the state answers that it is too busy, or fails",
    REFUSED: "the store of the state refuses the credentials",
    NO_BUCKET: "there is no such bucket for the state",
    NO_CONDITIONS: "the store of the state ignores conditions of a write",
    OTHER_REGION: "the bucket of the state is in another region than the one that was asked",
    NO_CREDENTIALS: "there are no credentials for the store of the state",
    NOT_TRUSTED: "the certificate of the state's store is not trusted",
    TOO_MANY: "a folder of the state on the store has too many objects",
}

SAYS_NO_BUCKET = re.compile(
    r"(?<![/\w=%-])NoSuchBucket\b|FilesystemNotFound|ContainerNotFound|The bucket does not exist"
    r"|specified (?:bucket|container|filesystem) does not exist"
)
SAYS_BUSY = re.compile(
    r"(?<![/\w=%-])(?:SlowDown|ServiceUnavailable|ServerBusy|InternalError|rateLimitExceeded|backendError)\b"
    r"|AWSServiceThrottled|(?i:status code): (?:429|50[0234])\b|\b429 Too Many Requests|\b503 Service Unavailable"
)
SAYS_OTHER_REGION = re.compile(
    r"(?<![/\w=%-])(?:PermanentRedirect|TemporaryRedirect|IllegalLocationConstraintException)\b|Status Code: 301"
    r"|permanent redirect|redirect without LOCATION"
    r"|AuthorizationHeaderMalformed.*region|region.*AuthorizationHeaderMalformed",
    re.DOTALL,
)
NAMED_REGION = re.compile(r"(?:response to region \[|expecting '|x-amz-bucket-region[=: ]+|<Region>)([a-z0-9-]+)")
"""What stores answer, in the words of obstore and of Hadoop's connectors; no folder or partition of these names."""

_METADATA_SERVICE = re.compile(r"https?://(?:169\.254\.169\.254|169\.254\.170\.2|metadata\.google\.internal)\b")
"""Where a machine of a cloud gets its own credentials; asked only where there are no others."""

_STATUS = re.compile(r"status code: ([0-9]{3})\b")
_DENIED = re.compile(
    r"status code: 40[13]\b|Credential|<Code>(?:ExpiredToken|InvalidToken|TokenRefreshRequired)</Code>"
)
_DENIED_CLASSES = ("UnauthenticatedError", "PermissionDeniedError", "PermissionError")
_SKEWED = "RequestTimeTooSkewed"
_SET_CLOCK = "set the clock of this machine: sudo timedatectl set-ntp true"
_NOT_BUILT = re.compile(r"status code: 501\b")
_NOT_BUILT_CLASSES = ("NotSupportedError", "NotImplementedError")
_ANSWER = re.compile(r": <(?:\?xml .*?\?>)?.*?<Code>(\w+)</Code>(?:<Message>([^<]*)</Message>)?.*", re.DOTALL)
"""The document of an answer, at the end of obstore's message."""

_REQUEST = re.compile(
    r"(?:Generic \w+ error: )?(?:Error performing token request: )?Error performing (\w+) (\S+) in \S+?"
    r"(?:, after (\d+) retries, max_retries: \d+, retry_timeout: \S+)? - (?:HTTP error: )?"
)
"""How obstore begins to say what it asked for, how often, and for how long."""

_UNTRUSTED = re.compile(r"InvalidCertificate\(\s*(\w+)")
_NO_ANSWER = re.compile(r"HttpError \{\s*kind: (?:Connect|Timeout|Interrupted|Request)\b")
_BROKEN_OFF = re.compile(r"HttpError \{\s*kind: Interrupted,\s*source: reqwest::Error \{\s*kind: Body\b")
_CAUSE = re.compile(r'message: "([^"]+)"|error: "([^"]+)"')
"""What the system said of a connection. obstore has it only in the structure that it prints behind its message."""


class StoreFailure(OSError):
    """A request to the store failed. ``code`` says why; whether a write landed is not known.

    Args:
        code: One of this module.
        said: What the store, or the connection to it, said.
        help: What to do, where more is known than the code says.
        gave_no_answer: Whether no whole answer came: nobody there, silence, or a connection that broke.
        broke_off: Whether an answer began. obstore reads the rest of an object then, and asks for nothing else again.
        may_pass: Whether the keys that are missing may come: who gives them was busy, or silent.
    """

    def __init__(
        self,
        code: str,
        said: str,
        help: str | None = None,
        *,
        gave_no_answer: bool = False,
        broke_off: bool = False,
        may_pass: bool = False,
    ) -> None:
        self.code = code
        self.may_pass = may_pass
        self.gave_no_answer = gave_no_answer
        self.broke_off = broke_off
        plain = _REQUEST.sub(_asked_for, _ANSWER.sub(_in_words, said), count=1)
        self.found = without_secrets(plain.split("\n")[0][:MAX_MESSAGE_CHARACTERS])
        self._help = help
        super().__init__(0, f"{_WHAT[code]}: {self.found}")

    @property
    def what(self) -> str:
        """What happened, without what the store said."""
        return _WHAT[self.code]

    @property
    def help(self) -> str:
        return self._help or _HELP[self.code]

    def unfit(self, where: str) -> EnvironmentUnfit:
        """Return the error that ends a command."""
        return EnvironmentUnfit(self.what, code=self.code, where=where, found=self.found, help=self.help)


def _in_words(answer: re.Match[str]) -> str:
    return f", {answer[1]}: {answer[2]}" if answer[2] else f", {answer[1]}"


def _asked_for(request: re.Match[str]) -> str:
    often = f", asked {int(request[3]) + 1} times" if request[3] and request[3] != "0" else ""
    return f"{request[1]} {request[2]}{often}: "


@contextmanager
def translated() -> Iterator[None]:
    """Raise what obstore raises in the block as a ``StoreFailure``."""
    try:
        yield
    except StoreFailure:
        raise
    except Exception as error:  # obstore's own classes, and built-in ones for what Python has a class for
        raise store_failure(error) from error


def is_no_bucket(error: Exception) -> bool:
    """Whether the bucket or container is missing, where an error may also mean an object that is not there."""
    return SAYS_NO_BUCKET.search(str(error)) is not None


def missing_bucket(error: Exception) -> StoreFailure:
    """Return the failure for an answer that nothing is there, where only the bucket or container can be meant."""
    return StoreFailure(NO_BUCKET, " ".join(str(error).partition("Debug source:")[0].split()))


def store_failure(error: Exception) -> StoreFailure:
    """Return the failure for an exception of obstore; what is not recognized counts as a store that is away."""
    name, text = type(error).__name__, str(error)
    said, _, structure = text.partition("Debug source:")
    said = " ".join(said.split())
    if is_no_bucket(error):
        return missing_bucket(error)
    if untrusted := _UNTRUSTED.search(structure):
        return StoreFailure(NOT_TRUSTED, f"{said} ({untrusted[1]})")
    if service := _METADATA_SERVICE.search(said):
        status = _STATUS.search(said)
        gave = f"answered with status {status[1]}" if status else "gave no answer"
        none = f"no credentials in the settings or the environment, and {service[0]}, where a cloud gives a machine its"
        may_pass = status is None or SAYS_BUSY.search(said) is not None
        return StoreFailure(NO_CREDENTIALS, f"{none} role, {gave}", may_pass=may_pass)
    if SAYS_BUSY.search(said):
        return StoreFailure(BUSY, said)
    if SAYS_OTHER_REGION.search(said):
        named = NAMED_REGION.search(said)
        help = _HELP[OTHER_REGION].replace("REGION_OF_THE_BUCKET", named[1]) if named else None
        return StoreFailure(OTHER_REGION, said, help)
    if name in _DENIED_CLASSES or _DENIED.search(said):
        return StoreFailure(REFUSED, said, _SET_CLOCK if _SKEWED in said else None)
    if name in _NOT_BUILT_CLASSES or _NOT_BUILT.search(said):
        return StoreFailure(NO_CONDITIONS, said)
    cause = _CAUSE.search(structure)
    reason = f" ({cause[1] or cause[2]})" if cause else ""
    return StoreFailure(
        UNREACHABLE,
        f"{said or name}{reason}",
        gave_no_answer=_NO_ANSWER.search(structure) is not None,
        broke_off=_BROKEN_OFF.search(structure) is not None,
    )
