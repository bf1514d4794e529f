"""Policies that must be refused: what each file is, and the code that says why.

``CANARY`` in a text stands for the path of a file that every attempt to run something would delete or fill.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GOOD = "version: 1\ntable: sales.orders\n"

Make = Callable[[Path, Path], None]


@dataclass(frozen=True)
class MalformedPolicy:
    """One file ``policies/t.yml``: its bytes, or what makes it (policy path, canary path), and the codes that fit."""

    name: str
    content: bytes | Make
    codes: frozenset[str]

    def write(self, project: Path, canary: Path) -> None:
        """Make the project that holds the file."""
        (project / "policies").mkdir(parents=True)
        (project / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
        path = project / "policies" / "t.yml"
        if isinstance(self.content, bytes):
            path.write_bytes(self.content.replace(b"CANARY", os.fsencode(canary)))
        else:
            self.content(path, canary)


def _case(name: str, content: str | bytes | Make, *codes: str) -> MalformedPolicy:
    return MalformedPolicy(name, content.encode("utf-8") if isinstance(content, str) else content, frozenset(codes))


def _link_to(target: str) -> Make:
    return lambda path, _: path.symlink_to(target)


def _link_to_canary(path: Path, canary: Path) -> None:
    path.symlink_to(canary)


def _folder_link(path: Path, _: Path) -> None:
    outside = path.parents[1] / "outside"
    outside.mkdir()
    (outside / "t.yml").write_text(GOOD, encoding="utf-8")
    (path.parent / "sub").symlink_to(outside)


def _with_holes(path: Path, _: Path) -> None:
    path.touch()
    os.truncate(path, 64 * 2**20)


def _laughs(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return GOOD + "\n".join(lines) + "\n"


TAGS = {
    "tag object apply": '!!python/object/apply:os.system ["rm -f CANARY"]',
    "tag object new": "!!python/object/new:os.system [rm -f CANARY]",
    "tag name": "!!python/name:os.remove ''",
    "tag module": "!!python/module:os ''",
    "tag object": "!!python/object:subprocess.Popen {args: [rm, -f, CANARY]}",
    "tag tuple": "!!python/tuple [a, b]",
    "tag java constructor": '!!javax.script.ScriptEngineManager [!!java.net.URLClassLoader [[!!java.net.URL ["http://127.0.0.1:9"]]]]',
    "tag binary": "!!binary c2FsZXM=",
    "tag set": "!!set {a}",
    "tag own": "!include CANARY",
    "tag env": "!ENV ${HOME}",
    "tag verbatim": "!<tag:yaml.org,2002:python/object/apply:os.remove> [CANARY]",
    "tag null byte": "!!python/object/apply:builtins.eval [\"open('CANARY', 'w')\"]",
}

MALFORMED = (
    # What a file is.
    _case("pipe", lambda path, _: os.mkfifo(path), "Y102"),
    _case("link to a device", _link_to("/dev/zero"), "Y102"),
    _case("link to /dev/stdin", _link_to("/dev/stdin"), "Y102"),
    _case("link to a secret file", _link_to("/etc/passwd"), "Y102"),
    _case("link to the canary", _link_to_canary, "Y102"),
    _case("link to itself", _link_to("t.yml"), "Y102"),
    _case("link to nothing", _link_to("gone.yml"), "Y102"),
    _case("socket", lambda path, _: os.mknod(path, stat.S_IFSOCK | 0o600), "Y101", "Y102"),
    _case("folder that is a link", _folder_link, "P355"),
    _case("257 KiB of comments", b"#" * (257 * 1024), "Y103"),
    _case("64 MiB with holes", _with_holes, "Y103"),
    # Encodings and characters.
    _case("UTF-16 little", b"\xff\xfe" + GOOD.encode("utf-16-le"), "Y104"),
    _case("UTF-16 big", b"\xfe\xff" + GOOD.encode("utf-16-be"), "Y104"),
    _case("UTF-16 without a mark", GOOD.encode("utf-16-le"), "Y105"),
    _case("UTF-32", GOOD.encode("utf-32"), "Y104"),
    _case("Latin-1", GOOD.encode() + b"owner: Ren\xe9\n", "Y104"),
    _case("overlong UTF-8", GOOD.encode() + b"owner: \xc0\xaf\n", "Y104"),
    _case("half of a surrogate pair", GOOD.encode() + b"owner: \xed\xa0\x80\n", "Y104"),
    _case("two byte order marks", b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD.encode(), "Y105"),
    _case("byte order mark inside", GOOD.encode() + b"owner: a\xef\xbb\xbfb\n", "Y105"),
    _case("NUL", GOOD.encode() + b"owner: a\x00b\n", "Y105"),
    _case("escape", GOOD.encode() + b"owner: \x1b[31mred\n", "Y105"),
    _case("bell and backspace", GOOD.encode() + b"owner: a\x07\x08b\n", "Y105"),
    _case("carriage return alone", GOOD.encode() + b"owner: a\rtags: [b]\n", "Y105"),
    _case("next line", GOOD.encode() + b"owner: a\xc2\x85b\n", "Y105"),
    _case("line separator", GOOD.encode() + b"owner: a\xe2\x80\xa8b\n", "Y105"),
    _case("text turned around", GOOD.encode() + b"owner: a\xe2\x80\xaeb\n", "Y105"),
    _case("escaped NUL in quotes", GOOD + 'owner: "a\\0b"\n', "Y105"),
    _case("escaped escape in quotes", GOOD + 'owner: "\\e[2J"\n', "Y105"),
    _case("tab as indentation", GOOD + "optimize:\n\tmaxFileSize: 1GiB\n", "Y106"),
    _case("tab before a value", GOOD + "owner:\ta\n", "Y106"),
    # What YAML can do and a policy may not.
    _case("empty", b"", "Y112"),
    _case("blanks and comments alone", "\n \n# nothing\n", "Y112"),
    _case("null", "~\n", "Y112"),
    _case("a list", "- version: 1\n", "Y113"),
    _case("a text", "sales.orders\n", "Y113"),
    _case("two documents", GOOD + "---\n" + GOOD, "Y111"),
    _case("document after an end", GOOD + "...\n---\nowner: x\n", "Y111"),
    _case("directive", "%YAML 1.1\n---\n" + GOOD, "Y122"),
    _case("tag directive", "%TAG ! tag:example.org,2026:\n---\n" + GOOD, "Y122"),
    _case("anchor", GOOD + "owner: &a me\n", "Y109"),
    _case("alias", GOOD + "owner: &a me\ndescription: *a\n", "Y109"),
    _case("alias of nothing", GOOD + "owner: *a\n", "Y109"),
    _case("alias of itself", GOOD + "optimize: &a [*a]\n", "Y109"),
    _case("alias bomb", _laughs(9), "Y109"),
    _case("alias bomb with a merge", _laughs(6) + "x: {<<: *a5}\n", "Y109"),
    _case("merge key", GOOD + "<<: {owner: me}\n", "Y109"),
    _case("merge key inside", GOOD + "optimize: {<<: {maxFileSize: 1GiB}}\n", "Y109"),
    _case("duplicate key", GOOD + "owner: a\nowner: b\n", "Y108"),
    _case("duplicate table", GOOD + "table: sales.other\n", "Y108"),
    _case("duplicate key inside", GOOD + "vacuum: {retention: 30d, retention: 0s}\n", "Y108"),
    _case("duplicate key in other quotes", GOOD + "'owner': a\n\"owner\": b\n", "Y108"),
    _case("number as a key", GOOD + "1: a\n", "Y114"),
    _case("truth as a key", GOOD + "true: a\n", "Y114"),
    _case("map as a key", GOOD + "? {a: b}\n: c\n", "Y114"),
    _case("list as a key", GOOD + "[a, b]: c\n", "Y114"),
    _case("21 deep", GOOD + "optimize: " + "[" * 21 + "]" * 21 + "\n", "Y115"),
    _case("100,000 deep", GOOD + "optimize: " + "[" * 100_000 + "\n", "Y115"),
    _case("40,000 maps deep", GOOD + "optimize: " + "{a: " * 40_000 + "\n", "Y115"),
    _case("10,001 values", GOOD + "tags: [" + "a, " * 10_001 + "]\n", "Y116"),
    _case("octal", GOOD + "optimize: {maxThreads: 010}\n", "Y117"),
    _case("base sixty", GOOD + "optimize: {maxThreads: 1:30:00}\n", "P203"),
    _case("number of 5,000 digits", GOOD + "optimize: {maxThreads: " + "9" * 5000 + "}\n", "Y118"),
    _case("1e999", GOOD + "optimize: {maxDeletedRowsRatio: 1e999}\n", "Y118", "Y119"),
    _case("infinity", GOOD + "optimize: {maxDeletedRowsRatio: .inf}\n", "Y119"),
    _case("not a number", GOOD + "optimize: {maxDeletedRowsRatio: .nan}\n", "Y119"),
    _case("Norway", GOOD + "vacuum: {allowShortRetention: no}\n", "P203"),
    _case("on and off", GOOD + "vacuum: {allowShortRetention: off}\n", "P203"),
    _case("second colon", GOOD + "owner: a: b\n", "Y121"),
    _case("unclosed quote", GOOD + 'owner: "me\n', "Y107"),
    _case("unclosed bracket", GOOD + "tags: [a, b\n", "Y107"),
    _case("Git conflict", "<<<<<<< HEAD\n" + GOOD + "=======\n" + GOOD + ">>>>>>> other\n", "Y107", "Y121", "Y108"),
    _case("Git conflict in a list", GOOD + "tags:\n- a\n<<<<<<< HEAD\n- b\n=======\n- c\n>>>>>>> x\n", "Y107"),
    _case("at sign", GOOD + "owner: @team\n", "Y107", "Y120"),
    _case("JSON with a comment", '{"version": 1, // all\n "table": "a.b"}\n', "Y107", "Y108", "Y114", "P201"),
    *(_case(name, f"{GOOD}owner: {text}\n", "Y110") for name, text in TAGS.items()),
    # What the schema and the rules refuse.
    _case("no version", "table: a.b\n", "P202"),
    _case("version 99", "version: 99\ntable: a.b\n", "P209"),
    _case("unknown key", GOOD + "optimise: {}\n", "P201"),
    _case("key that runs a program", GOOD + "hooks: {before: [rm, -f, CANARY]}\n", "P201"),
    _case("key that loads code", GOOD + "plugins: [os]\n", "P201"),
    _case("settings of Spark", GOOD + "sparkConf: {spark.jars: http://127.0.0.1:9/x.jar}\n", "P201"),
    _case("table is a map", "version: 1\ntable: {a: b}\n", "P203"),
    _case("table is a glob", 'version: 1\ntable: "sales.*"\n', "P205"),
    _case("retention without a unit", GOOD + "vacuum: {retention: 168}\n", "P203", "P205"),
    _case("negative size", GOOD + "optimize: {maxFileSize: -1GiB}\n", "P205"),
    _case("size of 10^400", GOOD + "optimize: {maxFileSize: " + "9" * 400 + "GiB}\n", "P205", "P206", "P307"),
    _case("retention of 10^100 days", GOOD + "vacuum: {retention: " + "9" * 100 + "d}\n", "P205", "P206", "P307"),
    _case("minimum over maximum", GOOD + "optimize: {minFileSize: 2GiB, maxFileSize: 1GiB}\n", "P302"),
    _case("call in a predicate", GOOD + "optimize: {where: \"reflect('java.lang.System','exit',1)\"}\n", "P310"),
    _case("variable of the environment", GOOD + 'owner: "${env:HOME}"\n', "P309"),
)
