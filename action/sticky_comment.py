"""Post a Markdown file as one comment of a pull request, or update that comment.

A step of `action.yml`: it reads SUMMARY (the file), COMMENT_NAME, COMMENT_AUTHOR and TOKEN, and GitHub's variables.
Standard library only. A comment that cannot be written, as on pull requests from forks, is a warning, not a failure.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MAX_CHARACTERS = 65_000
"""GitHub takes 65,536."""

PAGE = 100
MAX_PAGES = 50
TIMEOUT_S = 30.0


def main() -> None:
    """Find the comment by its hidden first line and its author, and update it, or create it."""
    number = pull_request()
    if number is None:
        sys.stdout.write("no pull request here: nothing to comment on\n")
        return
    name = re.sub(r"[^\w. -]", "", os.environ["COMMENT_NAME"])
    mark = f"<!-- rooflens: {name} -->"
    body = f"{mark}\n{Path(os.environ['SUMMARY']).read_text(encoding='utf-8')}"
    if len(body) > MAX_CHARACTERS:
        body = f"{body[:MAX_CHARACTERS]}\n\ntruncated: the job summary has the rest"
    try:
        write(number, mark, body)
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        reason = f"{error}".replace("%", "%25").replace("\r", " ").replace("\n", " ")
        sys.stdout.write(f"::warning::the comment was not written ({reason}): may the token write pull requests?\n")


def pull_request() -> int | None:
    """Return the number of the pull request of this event; None for other events."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    return number if isinstance(number, int) else None


def write(number: int, mark: str, body: str) -> None:
    """Update the comment if it exists, else create it."""
    issues = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    known = find(f"{issues}/{number}/comments", mark)
    if known is None:
        ask("POST", f"{issues}/{number}/comments", {"body": body})
    else:
        ask("PATCH", f"{issues}/comments/{known}", {"body": body})
    sys.stdout.write(f"{'wrote' if known is None else 'updated'} the comment on pull request {number}\n")


def find(path: str, mark: str) -> int | None:
    """Return the number of our comment: the first that begins with the mark and is by our author."""
    author = os.environ["COMMENT_AUTHOR"]
    for page in range(1, MAX_PAGES + 1):
        comments = ask("GET", f"{path}?per_page={PAGE}&page={page}")
        for comment in comments:
            body, user = comment.get("body") or "", comment.get("user") or {}  # null: a deleted account, an empty body
            if body.startswith(mark) and user.get("login") == author:
                return int(comment["id"])
        if len(comments) < PAGE:
            break
    return None


def ask(method: str, path: str, content: dict[str, str] | None = None) -> Any:
    """Send one request to GitHub's API and return the answer."""
    request = urllib.request.Request(  # noqa: S310 - the runner says where its API is
        os.environ["GITHUB_API_URL"] + path,
        method=method,
        data=None if content is None else json.dumps(content).encode(),
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Content-Type": "application/json",
            "User-Agent": "rooflens",
        },
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
        return json.load(answer)


if __name__ == "__main__":
    main()
