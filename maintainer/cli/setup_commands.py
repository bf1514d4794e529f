"""``maintainer init``, ``completion`` and ``version``: what needs no project yet.

``init`` makes a project that is valid at once, with its workflow, hook and editor settings; the texts of its files
are in ``new_project``. A bare ``maintainer==1.2`` in its requirements.txt would be looked up in whatever index pip is
configured with, and a public one may hand out somebody else's package of that name. So the line names the place that
this maintainer was installed from; where none is known it names a host that can never exist, and installing fails
with that name until a person has filled it in.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
import shlex
import sys
from difflib import unified_diff
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import click
from click.shell_completion import get_completion_class

from maintainer.cli.context import CliContext
from maintainer.errors import ProjectError
from maintainer.errors.foreign_text import printable
from maintainer.journal.folder.atomic_files import writing
from maintainer.model.product_version import __version__
from maintainer.model.table.store_kinds import STATE_PLACES, store_kind
from maintainer.policy.project.project_sections import DEFAULT_STATE, state_problem
from maintainer.policy.schema.schema_keys import POLICY_SCHEMA, PROJECT_SCHEMA, TESTS_SCHEMA, shipped_text
from maintainer.policy.table_names import absolute_path
from maintainer.policy.yaml.discovery import POLICY_FOLDER, PROJECT_FILE, find_files
from maintainer.report.style import is_terminal

UNKNOWN = "maintainer @ git+https://fill-in.invalid/maintainer@COMMIT"
"""``.invalid`` is reserved (RFC 2606): nobody can register it."""

_REMOTE = frozenset({"http", "https", "ssh"})
_MAX_RECORD_CHARACTERS = 20_000


def requirement_line() -> str:
    """Return the requirement that installs the very maintainer that runs, or ``UNKNOWN``.

    pip writes down where a package came from that was not taken from an index (PEP 610). A folder or file of
    this machine is no place for a pipeline, so it counts as unknown.
    """
    try:
        text = metadata.distribution("maintainer").read_text("direct_url.json")
    except (metadata.PackageNotFoundError, OSError, UnicodeDecodeError):
        return UNKNOWN
    return requirement_of(text) if text else UNKNOWN


def requirement_of(record: str) -> str:
    """Return the requirement for a PEP 610 record; ``UNKNOWN`` where it names nothing that others can reach."""
    try:
        source = json.loads(record) if len(record) <= _MAX_RECORD_CHARACTERS else None
    except ValueError:
        source = None
    match source:
        case {"subdirectory": _}:
            return UNKNOWN
        case {"url": str(url), "vcs_info": {"vcs": "git", "commit_id": str(commit)}}:
            place = _without_password(url)
            return UNKNOWN if place is None else f"maintainer @ git+{place}@{commit}"
        case {"url": str(url), "archive_info": {"hashes": {"sha256": str(digest)}}}:
            place = _without_password(url)
            return UNKNOWN if place is None else f"maintainer @ {place}#sha256={digest}"
    return UNKNOWN


def _without_password(url: str) -> str | None:
    """Return the URL without a password or token; None if it leads nowhere but to this machine."""
    parts = urlsplit(url)
    if parts.scheme not in _REMOTE or not parts.hostname or any(character.isspace() for character in url):
        return None
    user, at, host = parts.netloc.rpartition("@")
    # A user of ssh (`git`) is part of the address; one of https is a credential.
    address = f"{user.partition(':')[0]}@{host}" if at and parts.scheme == "ssh" else host
    return urlunsplit((parts.scheme, address, parts.path, "", ""))


_TEXTS = Path(__file__).parent / "new_project"
_FILES = {
    "maintainer.yml": "maintainer.yml",
    "policies/lake.yml": "lake_rule.yml",
    "policies/_fleet/nightly.yml": "nightly_rule.yml",
    "policies/_tests/lake.yml": "lake_tests.yml",
    **{f"schemas/{name}": name for name in (POLICY_SCHEMA, PROJECT_SCHEMA, TESTS_SCHEMA)},
    ".github/workflows/maintainer.yml": "workflow.yml",
    ".github/actions/maintainer/action.yml": "action.yml",
    ".pre-commit-config.yaml": "pre_commit.yml",
    ".vscode/settings.json": "vscode_settings.json",
    ".gitignore": "gitignore.txt",
    "requirements.txt": "requirements.txt",
}
"""Path in the project, and the text's name. None of the names has a meaning to Git or to a tool where it lies."""

_SCHEMAS = "schemas/"
_COPIES = tuple(path for path in _FILES if path.startswith((_SCHEMAS, ".github/", ".pre-commit")))
"""What a new version of maintainer may bring anew. The other files are what the project says itself."""


def project_files(requirement: str, state: str = DEFAULT_STATE, tables_root: str | None = None) -> dict[str, str]:
    """Return path (posix, relative to the project) and content of every file of a new project.

    Args:
        requirement: The line of requirements.txt that installs maintainer.
        state: Where the state of the jobs lies, as maintainer.yml says it.
        tables_root: The folder or URI below which tables lie, as maintainer.yml says it; None for an empty list.
    """
    files = {
        path: shipped_text(name) if name.endswith(".schema.json") else (_TEXTS / name).read_text(encoding="utf-8")
        for path, name in _FILES.items()
    }
    files["requirements.txt"] = files["requirements.txt"].format(requirement=requirement, version=__version__)
    roots = "" if tables_root is None else _in_yaml(tables_root)
    settings = _TEXTS / f"{store_kind(tables_root or '').connector}_settings.yml"
    store = settings.read_text(encoding="utf-8") if settings.is_file() else ""
    for placeholder, text in (("{state}", _in_yaml(state)), ("{roots}", roots), ("{store}\n", store + "\n")):
        files[PROJECT_FILE] = files[PROJECT_FILE].replace(placeholder, text)
    return files


def _in_yaml(place: str) -> str:
    """Return a place as one line of YAML: as it is, or in quotes."""
    return place if re.fullmatch(r"[A-Za-z0-9_./~-][A-Za-z0-9_./:=+~@-]*", place) else json.dumps(place)


_WORTH_ADDING = {
    ".gitignore": "; add the lines `.maintainer/` and `plan.json` to it",
    ".pre-commit-config.yaml": "; add the hook `maintainer-validate` to it",
    "requirements.txt": "; add a line for maintainer to it",
}


@click.command("init")
@click.argument("directory", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--root",
    "tables_root",
    metavar="PLACE",
    help="The folder or URI that has your tables. You can also write it into maintainer.yml later.",
)
@click.option(
    "--state",
    metavar="PLACE",
    help="Where the jobs, which run with --env prod, keep the records of runs: a folder that outlives each job, or "
    f"s3://... Without --env prod they are in {DEFAULT_STATE}. On a terminal, init asks. With --root in a bucket it "
    "proposes the folder _maintainer of that bucket.",
)
@click.option(
    "--renew",
    is_flag=True,
    help="In a project that is there: show how its schemas, workflow and hook differ from those of this version, and "
    "write each that you agree to. Without a terminal only show, or write all with --yes. A workflow or hook that is "
    "overwritten is kept beside it as .orig.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def init_command(
    context: CliContext, directory: Path | None, tables_root: str | None, state: str | None, *, renew: bool, yes: bool
) -> None:
    """Make a project in DIRECTORY (default: here). Existing files are never overwritten."""
    if renew:
        if tables_root is not None or state is not None:
            raise click.UsageError("`--renew` changes neither the tables nor the state: leave --root and --state out")
        return _renew(context.project_root if directory is None else directory, yes=yes)
    root = Path.cwd() if directory is None else directory
    if taken := [name for name in (PROJECT_FILE, POLICY_FOLDER) if os.path.lexists(root / name)]:
        raise ProjectError(
            "nothing was written, because there is a project here already",
            code="E618",
            where=str(root),
            found=", ".join(taken),
            help="choose another folder: `maintainer init DIR`, or renew schemas, workflow and hook: "
            "`maintainer init --renew`",
        )
    place_of_tables = _root_in_project(tables_root, root) if tables_root and tables_root.strip() else None
    proposed = _state_beside(place_of_tables or "")
    asks = context.verbosity >= 0 and not yes
    place = _checked(state) if state is not None else _asked(proposed) if asks else proposed
    requirement = requirement_line()
    files = project_files(requirement, place, place_of_tables)
    present = [name for name in files if os.path.lexists(root / name)]
    for name in (name for name in files if name not in present):
        _write(root / name, files[name], "x")
        if context.verbosity >= 0:
            click.echo(f"  + {name}")
    for name in present:
        click.echo(f"  = {name}   already exists and was not changed{_WORTH_ADDING.get(name, '')}")
    if context.verbosity < 0:
        return
    where = "" if directory in (None, Path()) else f"cd {shlex.quote(str(directory))} && "
    if place_of_tables is None:
        click.echo("A project with a rule that manages all tables below the `roots` of maintainer.yml.")
        click.echo(
            f"Next: write there where your tables lie, such as `roots: [/data/lake]`. Then: {where}maintainer list"
        )
    else:
        env = " --env prod" if place != DEFAULT_STATE else ""
        click.echo(f"A project with a rule for all tables below {place_of_tables}. Next: {where}maintainer{env} list")
    if requirement == UNKNOWN and "requirements.txt" not in present:
        click.echo("Before the workflow can run: say in requirements.txt where maintainer is installed from.")
    if place == DEFAULT_STATE and PROJECT_FILE not in present:
        click.echo("Before the workflow can be trusted: name a place that no job wipes, `state:` in maintainer.yml.")
    elif PROJECT_FILE not in present:
        click.echo(f"Records of runs: {place} with `--env prod`, as in the workflow; {DEFAULT_STATE} without it.")


def _root_in_project(written: str, project_root: Path) -> str:
    """Return the place of tables as maintainer.yml says it: a folder below the project relative to it."""
    project = Path(os.path.abspath(project_root))
    place = absolute_path(os.path.expanduser(written.strip()), Path.cwd())
    return place.removeprefix(f"{project}/") if place.startswith(f"{project}/") else place


_QUESTION = (
    "Where shall the jobs of the workflow remember their runs? A place such as s3://BUCKET/FOLDER, or a folder of the "
    f"runner outside the checkout, such as /srv/maintainer; `{DEFAULT_STATE}` is wiped by each checkout"
)


def _state_beside(tables_root: str) -> str:
    """Propose a folder of the tables' own bucket, which no search for tables looks into; else the default."""
    place = urlsplit(tables_root)
    has_bucket = place.scheme in STATE_PLACES and place.netloc != ""
    return f"{place.scheme}://{place.netloc}/_maintainer" if has_bucket else DEFAULT_STATE


def _asked(proposed: str) -> str:
    """Ask for the place of the state on a terminal; what is proposed where there is none, or for Enter."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return proposed
    answer: str = click.prompt(_QUESTION, default=proposed, err=True, value_proc=_checked)
    return answer


def _checked(written: str) -> str:
    """Return the place of a state as it is written down.

    Raises:
        click.UsageError: It cannot be one.
    """
    place = os.path.expanduser(written.strip()) or DEFAULT_STATE
    if (problem := state_problem(place)) is not None:
        raise click.UsageError(f"{problem[1]}: {problem[2]}")
    return place


def _write(path: Path, content: str, mode: str) -> None:
    with writing(path, "a file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8", newline="\n") as file:
            file.write(content)


def _renew(root: Path, *, yes: bool) -> None:
    """Show how a project's copies differ from those of this version, and write those that the user agrees to.

    Raises:
        ProjectError: There is no project (E611), or a file cannot be read or written (E640).
    """
    find_files(root)
    asks = is_terminal(sys.stdin) and is_terminal(sys.stderr)
    contents = project_files(UNKNOWN)
    differing, waiting = list[str](), list[str]()
    for name in _COPIES:
        with writing(root / name, "a file"):
            is_there = os.path.lexists(root / name)
            lines = (root / name).read_text(encoding="utf-8", errors="replace").splitlines() if is_there else []
        difference = list(unified_diff(lines, contents[name].splitlines(), name, name, lineterm=""))
        if not difference:
            continue
        differing.append(name)
        click.echo("\n".join(map(printable, difference)))
        if yes or (asks and click.confirm(f"Write {name}?", default=False, err=True)):
            kept = _kept_copy(root / name) if is_there and not name.startswith(_SCHEMAS) else None
            _write(root / name, contents[name], "w")
            click.echo(f"  + {name}" + ("" if kept is None else f"   what it was is in {kept.relative_to(root)}"))
        else:
            waiting.append(name)
    if waiting:
        click.echo(
            f"Not written: {', '.join(waiting)}{'' if asks else '. To write all: `maintainer init --renew --yes`'}"
        )
    elif not differing:
        click.echo("Schemas, workflow and hook are those of this version.")


def _kept_copy(path: Path) -> Path:
    """Copy a file that somebody may have edited to a free name beside it."""
    names = (f"{path.name}.orig{number or ''}" for number in itertools.count())
    copy = next(path.with_name(name) for name in names if not os.path.lexists(path.with_name(name)))
    with writing(copy, "a file"), copy.open("xb") as file:
        file.write(path.read_bytes())
    return copy


_INSTALL = {
    "bash": 'eval "$(maintainer completion bash)"      # in ~/.bashrc',
    "zsh": "maintainer completion zsh > ~/.zfunc/_maintainer    # with ~/.zfunc in fpath",
    "fish": "maintainer completion fish > ~/.config/fish/completions/maintainer.fish",
}


@click.command("completion", epilog="\b\n" + "\n".join(_INSTALL.values()))
@click.argument("shell", type=click.Choice(sorted(_INSTALL)))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print a completion script for SHELL: bash, zsh or fish."""
    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"click has no completion for {shell}")
    group = ctx.find_root().command
    script = maker(group, {}, "maintainer", "_MAINTAINER_COMPLETE")
    # Not `source()`: for bash it would start a shell only to look at its version.
    click.echo(script.source_template % script.source_vars())


_PACKAGES = ("pyspark", "delta-spark", "great-expectations", "pyyaml", "click")


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


@click.command("version")
def version_command() -> None:
    """Print the versions of maintainer, Python and the packages it uses."""
    versions = {"maintainer": __version__, "python": platform.python_version()}
    versions |= {package: _installed(package) for package in _PACKAGES}
    width = max(map(len, versions))
    for name, version in versions.items():
        click.echo(f"{name:{width}}  {version}")
