"""``notify:`` in maintainer.yml: which addresses are taken, and that none is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.project.project_sections import MAX_ADDRESS, NotifyOn
from tests.support.policies.projects import write_project

BOTH = (NotifyOn.FAILURE, NotifyOn.QUARANTINE)


def loaded(root: Path, text: str, **environ: str) -> LoadedProject:
    write_project(root, {"maintainer.yml": text})
    return load_project(root, environ=environ)


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ('notify: {url: "${env:HOOK}"}\n', BOTH),
        ('notify: {url: "${env:HOOK}", on: [quarantine]}\n', (NotifyOn.QUARANTINE,)),
        ('notify:\n  url: "${env:HOOK}"\n  on: [failure, quarantine]\n', BOTH),
        ('notify: {url: "${env:HOOK}", on: }\n', BOTH),
    ],
)
def test_an_address_and_what_for(tmp_path: Path, text: str, on: tuple[NotifyOn, ...]) -> None:
    project = loaded(tmp_path, text, HOOK="https://hooks.example.com:8443/T0/secret-part")
    assert project.diagnostics == ()
    notify = project.project.notify
    assert notify is not None
    assert (notify.url, notify.on) == ("https://hooks.example.com:8443/T0/secret-part", on)
    assert notify.host == "https://hooks.example.com"
    assert "secret-part" not in repr(project.project)


@pytest.mark.parametrize(
    "text", ["notify:\n", "notify: {url: }\n", 'notify: {url: ""}\n', 'notify: {url: "${env:HOOK:-}"}\n']
)
def test_without_an_address_nothing_is_sent(tmp_path: Path, text: str) -> None:
    project = loaded(tmp_path, text)
    assert (project.diagnostics, project.project.notify) == ((), None)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/x", "http://127.9.9.9/x", "http://[::1]:80/x", "http://localhost/x"]
)
def test_this_machine_needs_no_encryption(tmp_path: Path, url: str) -> None:
    project = loaded(tmp_path, f'notify: {{url: "{url}"}}\n')
    assert project.diagnostics == ()
    assert project.project.notify is not None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://hooks.example.com/planted", "not encrypted"),
        ("http://127.0.0.1.example.com/planted", "not encrypted"),
        ("http://10.0.0.1/planted", "not encrypted"),
        ("ftp://example.com/planted", "no https address"),
        ("file:///etc/planted", "no https address"),
        ("hooks.example.com/planted", "no https address"),
        ("https:///planted", "no https address"),
        ("https://[::1/planted", "no URL"),
        ("https://example.com:99999/planted", "no URL"),
        ("https://robot@example.com/planted", "has a user or a password"),
        ("https://example.com/a planted", "has blanks"),
        ("https://example.com/planted" + "x" * MAX_ADDRESS, "more than 2,000 characters"),
    ],
)
def test_other_addresses_are_refused_and_not_quoted(tmp_path: Path, url: str, says: str) -> None:
    project = loaded(tmp_path, 'notify: {url: "${env:HOOK}"}\n', HOOK=url)
    (diagnostic,) = project.diagnostics
    assert diagnostic.code == "P359"
    assert says in diagnostic.message
    assert "planted" not in repr(project.diagnostics)
    assert project.project.notify is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("notify: {on: [failure]}\n", "P202"),
        ('notify: {url: "https://a.example", on: [success]}\n', "P204"),
        ('notify: {url: "https://a.example", on: []}\n', "P2"),
        ('notify: {url: "https://a.example", every: 1d}\n', "P201"),
        ('notify: {url: "${env:HOOK}"}\n', "P354"),
        ("notify: https://a.example\n", "P2"),
    ],
)
def test_what_the_schema_refuses(tmp_path: Path, text: str, code: str) -> None:
    assert next(diagnostic.code for diagnostic in loaded(tmp_path, text).diagnostics).startswith(code)
