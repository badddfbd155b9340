"""Hostile names and addresses in a browser: on one page all are text, and nothing runs or is requested."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from browsing import OPEN_ALL, Opened
from msgspec.structs import replace
from support import samples
from support.hostile import ALL, RAN, REQUESTS, SCRIPTS, VEGA, hostile

from rooflens.format import printable
from rooflens.model.records import AnalyzedReport
from rooflens.report.page.page import render_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

MADE = """() => {
  const kinds = new Set();
  const handlers = [];
  for (const element of document.querySelectorAll("*")) {
    kinds.add(element.localName);
    for (const { name, value } of element.attributes) {
      const leads = /^(href|src|action|formaction|data|xlink:href|poster|srcset)$/.test(name);
      if (name.startsWith("on") || name === "srcdoc" || (leads && !/^(#|data:,)/.test(value))) handlers.push(name);
    }
  }
  const scripts = [...document.scripts].filter(script => script.type !== "application/json").length;
  return { kinds: [...kinds], handlers, scripts, ran: document.documentElement.dataset.ran || "" };
}"""
"""What markup in a text would make: kinds of elements, handlers, addresses, scripts, and the mark of one that ran."""

ATTEMPTS = {
    "script-src-elem": f"const s = document.createElement('script'); s.textContent = '{RAN}'; document.body.append(s);",
    "script-src-attr": f"document.body.insertAdjacentHTML('beforeend', '<b onclick=\"{RAN}\"></b>');"
    "document.body.lastChild.click();",
    "img-src": "new Image().src = 'https://other.example/a.png';",
    "connect-src": "fetch('https://other.example/').catch(() => 0);",
    "frame-src": "document.body.append(Object.assign(document.createElement('iframe'), {src: 'data:text/html,x'}));",
    "object-src": "document.body.append(Object.assign(document.createElement('object'), {data: 'data:text/html,x'}));",
    "worker-src": "try { new Worker('data:text/javascript,0'); } catch {}",
    "base-uri": "document.head.append(Object.assign(document.createElement('base'), {href: 'https://other.example/'}));",
    "form-action": "const f = document.createElement('form'); f.action = 'https://other.example/';"
    "document.body.append(f); f.submit();",
    "media-src": "document.body.append(Object.assign(document.createElement('video'), {src: 'https://other.example/v'}));",
    "font-src": "new FontFace('x', 'url(https://other.example/f)').load().catch(() => 0);",
}
"""A script that each directive of the policy must refuse, had somebody found a way to run one."""


def hostile_page() -> str:
    """Render a page on which every hostile text is a kernel's name, and in turn every other text of a report."""
    kinds = cycle([*samples.every_verdict(), samples.explained()])
    texts = cycle(ALL)
    analyses = []
    for index, (name, base) in enumerate(zip(ALL, kinds, strict=False)):
        poisoned = hostile(base, texts)
        gpu = analyses[-1].kernel.gpu if index % 6 else poisoned.kernel.gpu  # each GPU takes a roofline
        analyses.append(replace(poisoned, kernel=replace(poisoned.kernel, index=index, name=name, gpu=gpu)))
    return render_page([AnalyzedReport(hostile(samples.run(), texts), tuple(analyses))], title=SCRIPTS[1])


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write that page once."""
    file = tmp_path_factory.mktemp("hostile") / "page.html"
    file.write_text(hostile_page(), encoding="utf-8")
    return file


def test_hostile_texts_stay_text(
    open_file: Callable[..., Page], open_page: Callable[..., Page], hostile_file: Path
) -> None:
    """Names, files, ranges and lines of code make no element, handler or link anywhere on the page."""
    usual = open_page([*samples.every_verdict(), samples.explained(8), samples.failed(index=9), *samples.many(20)])
    usual.evaluate(OPEN_ALL)
    harmless = usual.evaluate(MADE)
    page = open_file(hostile_file)
    page.evaluate(OPEN_ALL)
    Opened(page).settle()
    made = page.evaluate(MADE)
    assert set(made.pop("kinds")) - set(harmless.pop("kinds")) == set()
    assert made == harmless == {"handlers": [], "scripts": 4, "ran": ""}
    body = " ".join((page.locator("body").text_content() or "").split())
    # What steers a terminal stands as `?` in code.
    shown = {
        text: {" ".join(each.split()) for each in (text, printable(text))} for text in (*SCRIPTS, *REQUESTS, *VEGA)
    }
    assert [text for text, forms in shown.items() if not any(form in body for form in forms)] == []


def test_hostile_addresses_change_nothing_but_the_view(open_file: Callable[..., Page], hostile_file: Path) -> None:
    """After `#` or `?`, raw or escaped, hostile text is treated like any unknown word."""
    page = open_file(hostile_file)
    before = page.evaluate(MADE)
    keys = page.evaluate("Object.keys(lens.state)")
    words = [text[:2000] for text in ALL]
    fragments = [*(quote(word) for word in words), *(f"{key}={quote(word)}" for key in keys for word in words[::9])]
    fragments += [*words, *(f"{key}={word}" for key in keys for word in SCRIPTS[::6])]
    fragments += ["__proto__=1", "constructor=1&k=__proto__", "k=toString", "verdicts=" + "a," * 5000, "%", "top=1e999"]
    followed = page.evaluate(
        """async fragments => {
          let count = 0;
          for (const fragment of fragments) {
            const turned = new Promise(done => addEventListener("hashchange", done, { once: true }));
            const old = location.href;
            location.hash = fragment;
            if (location.href !== old) await turned, count += 1;
          }
          await lens.settled();
          return count;
        }""",
        fragments,
    )
    assert followed > 0.9 * len(fragments)
    assert page.evaluate(MADE) == before


def test_a_script_that_got_in_could_do_nothing(browser: Browser, hostile_file: Path) -> None:
    """The page's content policy refuses scripts, handlers, evaluation, and all requests, and reports each refusal."""
    context = browser.new_context()
    page = context.new_page()
    sent: list[str] = []
    page.on("requestfinished", lambda request: sent.append(request.url))
    page.on("requestfailed", lambda request: request.failure == "csp" or sent.append(request.url))
    page.goto(hostile_file.as_uri())
    page.evaluate(
        "addEventListener('securitypolicyviolation', e => (window.refused ||= []).push(e.effectiveDirective))"
    )
    for attempt in ATTEMPTS.values():
        page.evaluate(f"() => {{ {attempt} }}")
    page.wait_for_timeout(200)
    refused = page.evaluate("window.refused")
    context.close()
    assert set(ATTEMPTS) - set(refused) == set()
    assert [url for url in sent if not url.startswith("file:")] == []
