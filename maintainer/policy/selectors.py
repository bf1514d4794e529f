r"""Choose policies by ``--select`` and ``--exclude``: dbt's grammar.

A term is ``method:value`` or a glob on names and paths; a comma joins terms that must all hold, a space joins
alternatives, and ``\ `` is a space in a name; ``@file`` reads one selector a line. Terms that need more than files
(``due``, ``drifted``, ``unmanaged``, ``result:...``) are answered by the command, which says what it knows in a
`SelectorContext`.
"""

from __future__ import annotations

import enum
import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from maintainer.errors import NothingSelected, ProjectError, unread
from maintainer.model.run.outcome import ENDS_BY_RESULT
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.diagnostics import nearest, nearest_table
from maintainer.policy.table_names import (
    absolute_glob,
    is_glob,
    name_key,
    name_matches,
    plain_name,
    table_called,
    table_ref,
)

MAX_SELECTOR_FILE_BYTES = 1024 * 1024
MAX_TERMS = 20_000
LOOKS_HELP = "it needs a look at the tables: use it with `plan`, `apply` or `status`"
_COMMENT = re.compile(r"(?:^|\s)#.*")
"""In a file, as in YAML: a name may have the sign within it."""


class Selectable(Protocol):
    """What a selection chooses from: a policy, or as much as is known of one that has errors."""

    @property
    def table(self) -> TableRef: ...

    @property
    def file(self) -> str:
        """The policy file, relative to the project."""

    @property
    def tags(self) -> tuple[str, ...]: ...

    @property
    def owner(self) -> str | None: ...


_P = TypeVar("_P", bound=Selectable)


class Method(enum.StrEnum):
    """How a term chooses."""

    TABLE = "table"
    TAG = "tag"
    PATH = "path"
    OWNER = "owner"
    STATE = "state"
    RESULT = "result"
    DUE = "due"
    DRIFTED = "drifted"
    UNMANAGED = "unmanaged"


_LASTING = (Method.TABLE, Method.TAG, Method.PATH, Method.OWNER)
"""What files alone answer, and no run changes."""

_WORDS = {"due": Method.DUE, "drifted": Method.DRIFTED, "unmanaged": Method.UNMANAGED}
_ALLOWED_VALUES = {Method.STATE: ("modified",), Method.RESULT: tuple(ENDS_BY_RESULT)}
_ALLOWED = "a name, a glob, tag:, path:, owner:, state:modified, result:failed, due, drifted, @file"
_TEXTS = re.compile(r"(?:\\ |\S)+")
"""What spaces separate; a backslash before a space makes it a part of a name."""


@dataclass(frozen=True, slots=True)
class SelectorTerm:
    """One criterion, and how it was written."""

    method: Method
    value: str
    text: str


@dataclass(frozen=True, slots=True)
class Selector:
    """Alternatives, each a tuple of terms that must all hold. Without alternatives: everything."""

    alternatives: tuple[tuple[SelectorTerm, ...], ...] = ()

    @property
    def terms(self) -> tuple[SelectorTerm, ...]:
        """All terms of all alternatives."""
        return tuple(term for terms in self.alternatives for term in terms)

    def needs(self, method: Method) -> bool:
        """Tell whether some term chooses in this way, so that a command fetches only what is asked about."""
        return any(term.method is method for term in self.terms)

    @property
    def table_names(self) -> tuple[str, ...]:
        """The tables that terms name one by one, without a glob, as they are written."""
        return tuple(term.value for term in self.terms if term.method is Method.TABLE and not is_glob(term.value))

    def without(self, methods: Collection[Method]) -> Selector:
        """Return the alternatives that choose in none of these ways."""
        return Selector(
            tuple(terms for terms in self.alternatives if all(term.method not in methods for term in terms))
        )


@dataclass(frozen=True)
class SelectorContext:
    """What a command knows beyond files; a method that is missing here is refused.

    ``answers`` maps a method to a function of (identifier, value). ``command`` is for messages. ``names_of`` returns
    all plain names under which a table was found, where it has several: a term that fits one of them fits the table.
    """

    root: Path
    command: str
    answers: Mapping[Method, Callable[[str, str], bool]] = field(default_factory=dict)
    names_of: Callable[[TableRef], Collection[str]] = lambda ref: ()


def parse_selector(specifications: Iterable[str], root: Path) -> Selector:
    """Read the values of ``--select`` or ``--exclude``.

    Args:
        specifications: Each may hold several alternatives, separated by spaces.
        root: Where ``@file`` and relative paths start.

    Raises:
        ProjectError: E621 a term is not in the grammar. E622 a file of selectors cannot be read.
    """
    alternatives: list[tuple[SelectorTerm, ...]] = []
    for specification in specifications:
        for text in _TEXTS.findall(specification):
            plain = text.replace("\\ ", " ")
            for joined in _from_file(plain[1:], root) if plain.startswith("@") else [plain]:
                alternatives.append(tuple(_term(part, joined) for part in joined.split(",")))
                if len(alternatives) > MAX_TERMS:
                    raise ProjectError(f"more than {MAX_TERMS:,} selectors", code="E621", help="use globs or tags")
    return Selector(tuple(alternatives))


def _from_file(name: str, root: Path) -> list[str]:
    path = root / name
    try:
        if not path.is_file():
            raise FileNotFoundError(2, "no such file", str(path))
        if path.stat().st_size > MAX_SELECTOR_FILE_BYTES:
            raise ProjectError(
                "the file of selectors is larger than 1 MiB", code="E622", where=str(path), help="use globs or tags"
            )
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        help = "`@file` names a text file with one selector a line"
        raise ProjectError(unread("the file of selectors", error), code="E622", where=str(path), help=help) from error
    selectors = [text for line in lines if (text := _COMMENT.sub("", line).strip().replace("\\ ", " "))]
    nested = [text for text in selectors if text.startswith("@")]
    if nested:
        help = "put its lines into this file, or name both on the command line"
        message = "a file of selectors names another one"
        raise ProjectError(message, code="E622", where=str(path), found=nested[0], help=help)
    return selectors


def _term(text: str, whole: str) -> SelectorTerm:
    name, colon, value = text.partition(":")
    if text in _WORDS:
        return SelectorTerm(_WORDS[text], "", text)
    method = {method.value: method for method in Method if method not in _WORDS.values()}.get(name) if colon else None
    if method is not None and value:
        allowed = _ALLOWED_VALUES.get(method)
        if allowed and value not in allowed:
            raise _bad_term(text, whole, f"`{name}:` knows {', '.join(allowed)}")
        return SelectorTerm(method, value, text)
    if not text:
        raise _bad_term(text, whole, "a comma means and, and has no space beside it: `tag:nightly,sales.*`")
    if method is not None:
        raise _bad_term(text, whole, f"allowed: {_ALLOWED}")
    if colon and "/" not in text:
        near = nearest(name, [method.value for method in Method])
        raise _bad_term(text, whole, f"did you mean `{near}:{value}`?" if near else f"allowed: {_ALLOWED}")
    return SelectorTerm(Method.TABLE, text, text)


def _bad_term(text: str, whole: str, help: str) -> ProjectError:
    what = f"`{text}` is not a selector" if text else f"an empty selector in `{whole}`"
    return ProjectError(what, code="E621", found=whole, help=help)


def select(
    policies: Sequence[_P],
    include: Selector,
    exclude: Selector,
    context: SelectorContext,
    *,
    allow_empty: bool = False,
    knows_all: bool = True,
) -> tuple[_P, ...]:
    """Return the policies that are chosen and not excluded, in the order given.

    Every alternative must match something: a misspelt tag beside a good one would otherwise leave tables out in
    silence, or let in one that was to be left out. Of what is excluded only names, tags, owners and files must: that
    nothing failed, or is due, is no mistake.

    Args:
        policies: What to choose from.
        include: What is chosen; everything without alternatives.
        exclude: What is left out.
        context: What the command knows.
        allow_empty: Whether nothing may match.
        knows_all: Whether there are no other tables, which an exclusion might mean.

    Raises:
        ProjectError: E623 nothing matches and ``allow_empty`` is not set. E624 the command cannot know the
            answer to a term.
    """
    candidates = [_candidate(policy, context.names_of(policy.table)) for policy in policies]
    chosen = set() if include.alternatives else {candidate.identity for candidate in candidates}
    for terms in include.alternatives:
        matching = _matching(terms, candidates, context)
        if not matching and not allow_empty:
            raise _nothing(terms, policies, context, "selects")
        chosen |= matching
    dropped: set[str] = set()
    for terms in exclude.alternatives:
        matching = _matching(terms, candidates, context)
        if not matching and knows_all and not allow_empty and all(term.method in _LASTING for term in terms):
            raise _nothing(terms, policies, context, "excludes")
        dropped |= matching
    remaining = chosen - dropped
    selected = tuple(
        policy for policy, candidate in zip(policies, candidates, strict=True) if candidate.identity in remaining
    )
    if not selected and not allow_empty:
        if dropped or policies:
            what, look = "everything that was selected is excluded", "`maintainer list` shows all tables"
        else:
            what = "no policy file names a table, and no rule with `manage: true` finds one"
            look = (
                "correct `roots:` or `databases:` in maintainer.yml or `match:` in the rule, "
                "`maintainer inventory FOLDER` lists the tables of a folder"
            )
        raise NothingSelected(what, help=f"{look}; pass --allow-empty if this is meant")
    return selected


def with_whole_names(selector: Selector, tables: Sequence[TableRef], root: Path) -> Selector:
    """Return the selector with the whole name for each end of one table's name; a whole name is no end of another.

    Raises:
        ProjectError: E613, the names of several tables end so.
    """
    known = frozenset(map(name_key, tables))

    def whole(term: SelectorTerm) -> SelectorTerm:
        if term.method is not Method.TABLE or is_glob(term.value) or name_key(table_ref(term.value, root)) in known:
            return term
        ref = table_called(term.value, ((table,) for table in tables))
        return term if ref is None else replace(term, value=ref.location)

    return Selector(tuple(tuple(map(whole, terms)) for terms in selector.alternatives))


def check_answerable(selector: Selector, context: SelectorContext) -> None:
    """Refuse terms that the command cannot answer, also where no policy would reach them.

    Raises:
        ProjectError: E624.
    """
    for term in selector.terms:
        _answerable(term, context)


def _answerable(term: SelectorTerm, context: SelectorContext) -> None:
    if term.method in _LASTING or term.method in context.answers:
        return
    if term.method is Method.STATE:
        help = "add `--since REF`, such as `--since origin/main`"
        raise ProjectError(f"`{term.text}` needs a commit to compare with", code="E624", help=help)
    helps = {
        Method.DUE: LOOKS_HELP,
        Method.DRIFTED: LOOKS_HELP,
        Method.UNMANAGED: "`maintainer inventory --unmanaged` lists such tables",
    }
    message = f"`maintainer {context.command}` cannot select by `{term.text}`"
    raise ProjectError(message, code="E624", help=helps.get(term.method))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A policy, and the forms in which its table is compared: the same for every term."""

    policy: Selectable
    identity: str
    keys: frozenset[str]
    names: frozenset[str]


def _candidate(policy: Selectable, others: Collection[str]) -> _Candidate:
    identity = name_key(policy.table)
    keys = frozenset({identity, *(name_key(TableRef(name)) for name in others)})
    return _Candidate(policy, identity, keys, frozenset({plain_name(policy.table), *others}))


def _matching(terms: tuple[SelectorTerm, ...], candidates: Sequence[_Candidate], context: SelectorContext) -> set[str]:
    tests = [_test(term, context) for term in terms]
    return {candidate.identity for candidate in candidates if all(test(candidate) for test in tests)}


def _test(term: SelectorTerm, context: SelectorContext) -> Callable[[_Candidate], bool]:
    value = term.value
    if term.method is Method.TABLE:
        wanted = name_key(table_ref(value, context.root))
        if not is_glob(value):
            return lambda table: wanted in table.keys
        globs = (absolute_glob(value, context.root),)
        return lambda table: wanted in table.keys or any(name_matches(name, globs) for name in table.names)
    if term.method is Method.TAG:
        return lambda table: value in table.policy.tags
    if term.method is Method.OWNER:
        return lambda table: table.policy.owner == value
    if term.method is Method.PATH:
        return lambda table: in_path(table.policy.file, value, context.root)
    _answerable(term, context)
    answer = context.answers[term.method]
    return lambda table: answer(table.policy.table.identifier, value)


def in_path(file: str, value: str, root: Path) -> bool:
    """Tell whether a policy file is the file or in the folder that is named, or matches a glob."""
    relative = value.removeprefix("./").rstrip("/")
    if relative.startswith(f"{root.as_posix()}/"):
        relative = relative[len(root.as_posix()) + 1 :]
    if is_glob(relative):
        return fnmatch.fnmatchcase(file, relative)
    return relative in ("", ".") or file == relative or file.startswith(relative + "/")


def _nothing(
    terms: tuple[SelectorTerm, ...], policies: Sequence[Selectable], context: SelectorContext, verb: str
) -> ProjectError:
    text = ",".join(term.text for term in terms)
    hints = []
    for term in terms:
        value, known = term.value, _known(term.method, policies)
        if term.method is Method.TABLE:
            # A path in any spelling is compared as the tables are called.
            value = table_ref(value, context.root).identifier
            cut_at_space = min((name for name in known if name.startswith(f"{value} ")), default=None)
            near = cut_at_space or nearest_table(value, known)
        else:
            near = nearest(value, known) if value else None
        if near is not None and near != value:
            prefix = "" if term.method is Method.TABLE else f"{term.method.value}:"
            written = near.replace(" ", "\\ ")
            hints.append(f"did you mean `{prefix}{written}`?")
            if written != near:
                hints.append("A space in a name is written `\\ `, between quotes of the shell.")
    if sum(term.method is Method.TABLE for term in terms) > 1:
        hints.append("A comma means and: put a space between several tables.")
    help = " ".join([*hints, "`maintainer list` shows all tables; --allow-empty if nothing is right"])
    return NothingSelected(f"`{text}` {verb} nothing", found=text, help=help)


def _known(method: Method, policies: Sequence[Selectable]) -> set[str]:
    if method is Method.TAG:
        return {tag for policy in policies for tag in policy.tags}
    if method is Method.OWNER:
        return {policy.owner for policy in policies if policy.owner}
    if method is Method.PATH:
        files = {policy.file for policy in policies}
        return files | {parent.as_posix() for file in files for parent in Path(file).parents}
    return {policy.table.identifier for policy in policies}
