"""Reading files from disk: only regular files inside the project, never through a link, never more than 256 KiB."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from maintainer.policy.diagnostics import START_OF_FILE
from maintainer.policy.yaml.yaml_reader import MAX_FILE_BYTES, read_document, read_text

GOOD = "version: 1\ntable: a.b\n"


def code_of(path: Path, root: Path) -> str:
    document, findings = read_document(path, root)
    assert document is None
    (finding,) = findings
    assert (finding.span.line, finding.span.column) == (1, 1)
    assert finding.help
    return finding.code


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yml").write_text(GOOD)
    document, findings = read_document(tmp_path / "policies" / "a.yml", tmp_path)
    assert findings == []
    assert document is not None
    assert document.file == "policies/a.yml"
    assert document.data == {"version": 1, "table": "a.b"}


def test_a_link_is_not_followed_wherever_it_leads(tmp_path: Path) -> None:
    (tmp_path / "real.yml").write_text(GOOD)
    for name, target in (("a.yml", "real.yml"), ("b.yml", "/etc/passwd"), ("c.yml", "nowhere"), ("d.yml", "d.yml")):
        (tmp_path / name).symlink_to(target)
        assert code_of(tmp_path / name, tmp_path) == "Y102"


def test_a_folder_that_is_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "a.yml").write_text(GOOD)
    (root / "linked").symlink_to(outside)
    assert code_of(root / "linked" / "a.yml", root) == "Y102"
    assert code_of(root / ".." / "outside" / "a.yml", root) == "Y102"


def test_a_project_may_itself_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.yml").write_text(GOOD)
    (tmp_path / "link").symlink_to("real")
    document, _ = read_document(tmp_path / "link" / "a.yml", tmp_path / "link")
    assert document is not None
    assert document.file == "a.yml"


def test_pipes_folders_devices_and_sockets_are_refused_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.yml")
    (tmp_path / "folder.yml").mkdir()
    assert code_of(tmp_path / "pipe.yml", tmp_path) == "Y102"
    assert code_of(tmp_path / "folder.yml", tmp_path) == "Y102"
    assert code_of(Path("/dev/zero"), Path("/dev")) == "Y102"
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.yml")
        assert code_of(tmp_path / "s.yml", tmp_path) == "Y101"


def test_what_is_not_there_or_not_readable(tmp_path: Path) -> None:
    assert code_of(tmp_path / "missing.yml", tmp_path) == "Y101"
    assert code_of(tmp_path / "no\0name.yml", tmp_path) == "Y101"
    (tmp_path / "secret.yml").write_text(GOOD)
    (tmp_path / "secret.yml").chmod(0)
    if os.geteuid() != 0:
        assert code_of(tmp_path / "secret.yml", tmp_path) == "Y101"


def test_the_size_limit_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text(GOOD + "#" * (MAX_FILE_BYTES - len(GOOD)))
    assert read_document(path, tmp_path)[1] == []
    path.write_text(GOOD + "#" * (MAX_FILE_BYTES - len(GOOD) + 1))
    assert code_of(path, tmp_path) == "Y103"


def test_a_text_in_memory_has_the_bound_of_a_file() -> None:
    text = GOOD + "#" * (MAX_FILE_BYTES - len(GOOD))
    document, findings = read_text(text, "t.yml")
    assert (document is not None, findings) == (True, [])
    document, (finding,) = read_text(f"{text}#", "t.yml")
    assert document is None
    assert read_text(f"{text}#".encode(), "t.yml") == (None, [finding])


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no file here that can be opened and not be read")
def test_a_file_that_fails_while_it_is_read_is_a_finding(tmp_path: Path) -> None:
    """The first page of a process is never mapped: reading it fails after the file was opened."""
    process = Path(f"/proc/{os.getpid()}")
    document, (finding,) = read_document(process / "mem", process)
    assert document is None
    assert (finding.file, finding.span) == ("mem", START_OF_FILE)
    missing, (other,) = read_document(process / "none.yml", process)
    assert missing is None
    assert finding.code == other.code
