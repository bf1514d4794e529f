"""Checks pages for keyboards and screen readers: ``python -m tools.accessibility_check AXE PAGE ...``.

AXE is ``axe.min.js`` of the package axe-core (``npm install axe-core``), PAGE a file of ``maintainer report`` or one
saved from ``maintainer ui``. Each page is opened in headless Chromium (``CHROMIUM`` names another program) with all
folds open, wide and light as well as narrow and dark. Findings are printed; one that axe calls serious or critical
makes the check fail. axe runs in a copy of the page: its Content-Security-Policy lets no other script run.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 180
SCREENS = {
    "wide, light": ("--window-size=1200,900",),
    "narrow, dark": ("--window-size=500,900", "--blink-settings=preferredColorScheme=0"),
}
BAD = frozenset({"serious", "critical"})

_RUN = """
for (const fold of document.querySelectorAll("details")) fold.open = true;
axe.run().then(found => {
  document.documentElement.textContent = "AXE" + JSON.stringify({passes: found.passes.length, violations:
    found.violations.map(rule => [rule.impact, rule.id, rule.help, rule.nodes.map(node => node.html)])}) + "END";
});
"""


def with_axe(page: str, axe: str) -> str:
    """Return a page that runs axe on itself and then holds nothing but what was found."""
    page = re.sub(r'<meta http-equiv="(Content-Security-Policy|refresh)"[^>]*>', "", page)
    scripts = "".join("<script>" + text.replace("</script", "<\\/script") + "</script>" for text in (axe, _RUN))
    return page.replace("</body>", scripts + "</body>")


def findings(page: Path, axe: str, options: Sequence[str]) -> tuple[int, list[Any]]:
    """Return how many rules a page passes, and those that it does not: impact, rule, what it asks for, elements.

    Raises:
        SystemExit: There is no Chromium, or it showed no result.
    """
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("no Chromium: install it, or name it with CHROMIUM=/path/to/chromium")
    with tempfile.TemporaryDirectory() as profile:
        opened = Path(profile) / "page.html"
        opened.write_text(with_axe(page.read_text(encoding="utf-8"), axe), encoding="utf-8")
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}/profile",
            "--virtual-time-budget=20000", *options, "--dump-dom", opened.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    result = re.search("AXE(.*)END", html.unescape(done.stdout), re.DOTALL)
    if result is None:
        raise SystemExit(f"{page}: axe gave no result: {done.stderr[-500:]}")
    document = json.loads(result[1])
    return document["passes"], document["violations"]


def main(arguments: Sequence[str]) -> int:
    """Check pages; 1 if one has a serious finding."""
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    axe = Path(arguments[0]).read_text(encoding="utf-8")
    failed = False
    for name in arguments[1:]:
        for screen, options in SCREENS.items():
            passes, violations = findings(Path(name), axe, options)
            failed = failed or any(impact in BAD for impact, *_ in violations)
            print(f"{name} ({screen}): {passes} rules pass, {len(violations)} do not")
            for impact, rule, asked, elements in violations:
                print(f"  {impact} {rule}: {asked}; {len(elements)} elements, the first: {elements[0][:160]}")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
