"""The sections of maintainer.yml that are more than a few values: what they hold, and what is refused in them.

``notify``: whom a run tells that a table needs a person; its address is a secret. ``prices``: what storage, scanning
and computing cost, for the money in reports. ``spark``: settings and packages for every session that a command starts;
secrets come from outside. ``state``: the one folder in which everything that lasts between runs lies.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import urlsplit

from maintainer.errors.foreign_text import SECRET_KEY, first_secret
from maintainer.model.table.store_kinds import STATE_PLACES, STORE_KINDS
from maintainer.model.table.store_requests import RunRequests
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.resolve.policy_fields import setting
from maintainer.policy.table_names import is_uri, name_matches
from maintainer.policy.yaml.yaml_document import Path as DataPath
from maintainer.policy.yaml.yaml_document import YamlDocument

MAX_ADDRESS = 2_000
"""Characters of an address."""


class NotifyOn(StrEnum):
    """What is worth a message: a run that did not end well, or a table that goes into quarantine."""

    FAILURE = "failure"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True, repr=False)
class Notify:
    """An address that takes an HTTP POST, and what for. The address is never shown: who has it can post to it."""

    url: str = setting(..., type=["string", "null"], required=True, example="${env:MAINTAINER_HOOK:-}")
    """The address, which is never printed: https, or http on this machine. `${env:NAME}` is replaced; an empty address
    sends nothing."""
    on: tuple[NotifyOn, ...] = setting(
        tuple(NotifyOn),
        items={"examples": ["failure"]},
        minItems=1,
        maxItems=2,
        note="both",
        example=["failure", "quarantine"],
    )
    """When to send. `failure`: at the end of a run that failed. `quarantine`: at once when a verification failed."""

    @property
    def host(self) -> str:
        """Scheme and host of the address, which may be shown."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}"


def notify_problems(document: YamlDocument, data: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Refuse an address that would be sent in the clear, or is none. It is not quoted: it may be a secret.

    Args:
        document: maintainer.yml.
        data: What it says once environment variables are put in.
    """
    given = data.get("notify")
    url = given.get("url") if isinstance(given, dict) else None
    if not isinstance(url, str) or not url:
        return
    what = _refused(url)
    if what is not None:
        help = "write `https://...`, best as `${env:NAME}`; `http://` is for this machine alone (127.0.0.1, localhost)"
        yield document.error_at(("notify", "url"), "P359", what, help)


def _refused(url: str) -> str | None:
    if len(url) > MAX_ADDRESS or any(character.isspace() or not character.isprintable() for character in url):
        return f"the address of `notify` has blanks, or more than {MAX_ADDRESS:,} characters"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "the address of `notify` is no URL"
    if parts.scheme not in ("https", "http") or not host:
        return "the address of `notify` is no https address"
    if parts.username is not None:
        return "the address of `notify` has a user or a password before the host, which no message is sent with"
    if parts.scheme == "http" and not is_this_machine(host):
        return "the address of `notify` is not encrypted"
    return None


def is_this_machine(host: str) -> bool:
    """Tell whether a host can only be this machine: ``localhost``, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in one currency; None where nobody said one, and then reports show no money for it."""

    currency: str = setting("", minLength=1, maxLength=8, pattern="^\\S+$", example="EUR")
    """Printed after each amount."""
    scanned_tib: float | None = setting(key="scannedTiB", minimum=0, example=5.0)
    """Price of one TiB that queries read."""
    stored_gib_month: float | None = setting(key="storedGiBMonth", minimum=0, example=0.023)
    """Price of storing one GiB for a month."""
    compute_hour: float | None = setting(minimum=0, example=1.2)
    """Price of one hour of the machine or cluster on which runs take place."""
    thousand_reads: float | None = setting(minimum=0, example=0.0004)
    """Price of a thousand requests to an object store that read or look at an object."""
    thousand_writes: float | None = setting(minimum=0, example=0.005)
    """Price of a thousand requests that write or list; deletions cost nothing."""

    def priced(self, requests: RunRequests) -> RunRequests:
        """Return requests to stores with what they cost; as they are without both prices."""
        if self.thousand_reads is None or self.thousand_writes is None:
            return requests
        counted = requests.counted
        cheap, dear = counted.reads + counted.looks, counted.writes + counted.lists
        cost = (cheap * self.thousand_reads + dear * self.thousand_writes) / 1000
        return replace(requests, cost=cost, currency=self.currency)


PREFIX = "spark."
FROM_OUTSIDE = "${env:"
PACKAGES = "spark.jars.packages"

_DYNAMODB = "io.delta:delta-storage-s3-dynamodb:4.4.0"
_PACKAGE = re.compile(r"[\w.-]+:[\w.-]+:[\w.+-]+")


@dataclass(frozen=True, slots=True, repr=False)
class SparkSettings:
    """Settings of Spark and packages that it loads. They may hold secrets, and are never shown."""

    packages: tuple[str, ...] = setting(
        (),
        items={"description": "`group:artifact:version`.", "examples": [_DYNAMODB]},
        uniqueItems=None,
        maxItems=50,
        example=[_DYNAMODB],
    )
    """Maven packages that Spark loads at each start, with their dependencies."""
    conf: tuple[tuple[str, object], ...] = setting(
        (),
        maxProperties=200,
        additionalProperties={
            "type": ["string", "number", "boolean"],
            "description": "The value of one setting.",
            "examples": ["4g"],
        },
        type="object",
        example={"spark.sql.catalogImplementation": "hive", "spark.hadoop.fs.s3a.secret.key": "${env:S3_SECRET_KEY}"},
    )
    """Spark settings, as for `--conf`; names begin with `spark.`. Write a secret as `${env:NAME}`, never in plain
    text."""

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """All settings, in their order; the packages are one of them."""
        conf = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in self.conf}
        if self.packages:
            conf[PACKAGES] = ",".join(dict.fromkeys([*filter(None, [conf.get(PACKAGES)]), *self.packages]))
        return tuple(conf.items())


def spark_problems(document: YamlDocument) -> Iterator[Diagnostic]:
    """Refuse settings that are not Spark's, secrets that are written out, and packages that are none.

    No value of a setting is quoted.

    Args:
        document: maintainer.yml as it was written, before environment variables are put in.
    """
    conf, packages = (document.value_at(("spark", key)) for key in ("conf", "packages"))
    for key, value in conf.items() if isinstance(conf, dict) else ():
        path = ("spark", "conf", key)
        # Of maps in maps the schema has said that names are one piece.
        if not (f"{key}." if isinstance(value, dict) else key).startswith(PREFIX):
            help = f"write `spark.hadoop.{key}` for a setting of Hadoop, or the whole name of one of Spark's"
            yield document.error_at(path, "P370", "the name of a Spark setting begins with `spark.`", help)
        elif SECRET_KEY.search(key) and isinstance(value, str) and value and FROM_OUTSIDE not in value:
            help = "write `${env:NAME}` and set that variable where maintainer runs; change the secret, Git has seen it"
            yield document.error_at(path, "P371", f"the secret of `{key}` is written out", help)
    for at, package in enumerate(packages if isinstance(packages, list) else ()):
        if not _PACKAGE.fullmatch(str(package)):
            help = f"write `group:artifact:version`, as in `{_DYNAMODB}`"
            yield document.error_at(("spark", "packages", at), "P372", "this is not a Maven package", help)


def budget_problems(document: YamlDocument) -> Iterator[Diagnostic]:
    """Warn of a budget of tables that comes too late: of those whose globs fit a table, the first counts."""
    tables = document.value_at(("budget", "tables"))
    globs = list(tables) if isinstance(tables, dict) else []
    for at, glob in enumerate(globs):
        if (wider := next((first for first in globs[:at] if name_matches(glob, (first,))), None)) is not None:
            message = f"`{wider}` stands before `{glob}` and fits the same tables: this budget never counts"
            help = f"move it above `{wider}`"
            yield document.warning_at(("budget", "tables", glob), "P358", message, help, at_key=True)


DEFAULT_STATE = ".maintainer"
LEDGER_NAME, RUNS_NAME = "ledger", "runs"
"""The ledger's folder in the state, and that of all run folders."""


_SECRET_PLACE = (
    "Y123",
    "what looks like a secret in an address, which records and reports show",
    "name the place without it; credentials belong under `spark: conf:`, as `${env:NAME}`",
)


def place_problems(document: YamlDocument, data: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Refuse secrets in places, a ledger in that of the whole state, and storage that a state cannot lie on.

    Args:
        document: maintainer.yml.
        data: Its content, with environment variables put in.
    """
    environments = data.get("environments")
    named = environments.items() if isinstance(environments, dict) else ()
    levels: list[tuple[DataPath, object]] = [((), data), *((("environments", name), level) for name, level in named)]
    for path, level in levels:
        written, roots = (level.get("state"), level.get("roots")) if isinstance(level, dict) else (None, None)
        if isinstance(written, str) and (problem := state_problem(written)):
            yield document.error_at((*path, "state"), *problem)
        for at, root in enumerate(roots if isinstance(roots, list) else ()):
            if isinstance(root, str) and first_secret(root) is not None:
                yield document.error_at((*path, "roots", at), *_SECRET_PLACE)


def state_problem(written: str) -> tuple[str, str, str] | None:
    """Return code, message and help for a place that cannot be a state; None for one that can."""
    if first_secret(written) is not None:
        return _SECRET_PLACE
    folder, _, last = written.rstrip("/").rpartition("/")
    if last == LEDGER_NAME:
        message = "`state` is the folder for everything that a run leaves, not only for the ledger"
        return "P380", message, f"write `state: {folder or DEFAULT_STATE}`; the ledger is in it, as `{LEDGER_NAME}`"
    scheme, _, rest = written.partition("://")
    if is_uri(written) and (scheme not in STATE_PLACES or not rest.partition("/")[0]):
        message = f"the state cannot be on `{written}`"
        return "P381", message, f"name a folder of this machine, or {', '.join(dict.fromkeys(STATE_PLACES.values()))}"
    return None


def ledger_in(state: str) -> str:
    """Return where the ledger of a state lies: a path or URI that Spark can open."""
    scheme, separator, rest = state.partition("://")
    kind = STORE_KINDS.get(scheme) if separator else None
    place = state if kind is None or kind.hadoop_scheme is None else f"{kind.hadoop_scheme}://{rest}"
    return posixpath.join(place, LEDGER_NAME)
