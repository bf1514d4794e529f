"""Count the words of the documentation that a person reads through, as ``wc -w`` does.

``python -m tools.prose_words`` prints them. Pages in which something is looked up do not count: what the program prints
about itself, lists of commands, codes and reasons, and the records of the mutation runs. What stands between marks is
left out: the table of keys on the page on policies, and that of requests on the page on costs.
"""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
REFERENCE = (
    "api.md", "cli.md", "codes.md", "commands.md", "demo.md", "features.md", "guards.md", "mutation.md",
    "nightly-codes.md", "reasons.md",
)  # fmt: skip
MARKED = tuple((f"<!-- {name} -->", f"<!-- /{name} -->") for name in ("keys", "requests"))


def prose_words() -> dict[str, int]:
    """Count the words of each page of prose."""
    words = {}
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        for begin, end in MARKED:
            if begin in text:
                text = text[: text.index(begin)] + text[text.index(end) :]
        if page.name not in REFERENCE:
            words[page.relative_to(DOCS).as_posix()] = len(text.split())
    return words


if __name__ == "__main__":
    counted = prose_words()
    for name, number in sorted(counted.items(), key=lambda item: item[1]):
        print(f"{number:7,}  {name}")
    print(f"{sum(counted.values()):7,}  in {len(counted)} pages")
