"""Settings of the documentation site: `make docs` writes it to out/docs, without network but for the viewer.

The pages are plain Markdown that also reads well in the repository. The site adds these parts:

- Reference pages and tables derived from the code, written by `generators/`.
- The table of contents, from the lists of links under the headings of an `index.md`: no page needs a directive.
- A link to a stored report (`../../fixtures/published/NAME.ncu-rep`) leads to its live page, rendered in each build;
  if such a link is a paragraph of its own, the page is also shown below it in a frame.
- A picture of a page links to the live page it shows; if there is a `NAME_dark.png` beside it, that is shown in the
  dark theme.
- In a `console` block only lines after `$ ` are commands: output may begin with `#`.
- A link to the source file of a reference page leads to that page: a clone has only the file.
- A link to `viewer/index.html` leads to the viewer, built under `open/`; where npm and pip reach no registry, a page
  there says so.
- A link to another file of the repository leads to a copy of it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from docutils import nodes
from pygments.lexers.shell import BashSessionLexer
from sphinx import addnodes
from sphinx.errors import ExtensionError

HERE = Path(__file__).parent.resolve()
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import generators  # noqa: E402 - found only now
from generators.sources import to_site  # noqa: E402
from generators.texts import filled  # noqa: E402
from images import draw  # noqa: E402

from rooflens.cli.group import main  # noqa: E402
from rooflens.report.html.theme import DARK, FONT, LIGHT, LOOKS, Inks  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sphinx.application import Sphinx

PUBLISHED = ROOT / "fixtures" / "published"
LIVE = "live"
"""Folder of the site with the live pages."""
FILES = "files"
"""Folder of the site with copies of the repository's files."""
VIEWER, OPEN = ROOT / "viewer" / "index.html", "open"
"""The viewer's page, and the folder of the site with the built viewer."""
NOT_HAD = 75
"""The exit status of `viewer/build.py` where no registry could be reached."""
FRAME = (
    '<iframe class="live" src="{}" title="{}" loading="lazy"></iframe>'
    '<p class="live-note">This is the page itself, made with this documentation: click, filter and sort.</p>'
)

project = "rooflens"
author = tomllib.loads((ROOT / "packaging/project.toml").read_text("utf-8"))["author"]
extensions = ["myst_parser"]
exclude_patterns = ["images/*.py", "generators/*"]
nitpicky = True
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
myst_heading_anchors = 4
html_theme = "furo"
html_title = "rooflens"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_logo = html_favicon = None
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False


def _variables(inks: Inks, *, dark: bool) -> dict[str, str]:
    """Return the colours of rooflens's own pages for Furo."""
    blue = LOOKS["memory"].dark if dark else LOOKS["memory"].light
    return {
        "font-stack": FONT,
        "color-brand-primary": inks.ink,
        "color-brand-content": blue,
        "color-brand-visited": blue,
        "color-background-primary": inks.page,
        "color-background-secondary": inks.surface,
        "color-background-border": inks.line,
        "color-foreground-primary": inks.ink,
        "color-foreground-secondary": inks.muted,
        "color-sidebar-item-background--current": inks.grid,
        "color-code-background": inks.surface,
        "logo": blue,
    }


html_theme_options = {
    "light_css_variables": _variables(LIGHT, dark=False),
    "dark_css_variables": _variables(DARK, dark=True),
}
html_sidebars = {
    "**": [
        "brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
templates_path = ["_templates"]


def live_pages() -> dict[str, list[str]]:
    """Return the arguments of rooflens that make each live page, by its name without extension."""
    titles = {Path(report).stem: title for _, report, title in draw.FIRST_SCREENS}
    made = {
        report.stem: ["report", str(report), *(["--title", titles[report.stem]] if report.stem in titles else [])]
        for report in sorted(PUBLISHED.glob("*.ncu-rep"))
    }
    both = [str(PUBLISHED / f"GPU_workshop__MW_{side}.ncu-rep") for side in ("Baseline", "DivToMult")]
    sweep = sorted(str(report) for report in (PUBLISHED.parent / "synthetic").glob("sweep_gemm_*.synthetic.ncu-rep"))
    return made | {
        "predict": [*draw.FORECAST],
        "compare": ["compare", *both],
        "sweep": ["report", *sweep, "--title", "gemm in bf16, four sizes"],
    }


PICTURED = {
    **dict.fromkeys(("page", "card", "phone"), Path(draw.PUBLISHED).stem),
    **{picture: Path(report).stem for picture, report, _ in draw.FIRST_SCREENS},
    "predict": "predict",
    "sweep": "sweep",
}
"""Picture of docs/images -> the live page that it shows."""


def write_reference(app: Sphinx) -> None:  # noqa: ARG001 - as Sphinx calls it
    """Write the generated pages before Sphinx looks for pages."""
    generators.write()


def fill_tables(app: Sphinx, name: str, source: list[str]) -> None:  # noqa: ARG001 - as Sphinx calls it
    """Put generated tables into the handwritten pages of the reference."""
    make = generators.TABLES.get(f"{name.removeprefix('reference/')}.md")
    if make and name.startswith("reference/"):
        source[0] = filled(source[0], make())


def lead_to_pages(app: Sphinx, name: str, source: list[str]) -> None:  # noqa: ARG001 - as Sphinx calls it
    """Let links to the source of a page lead to the page."""
    source[0] = to_site(source[0], HERE / f"{name}.md")


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:  # noqa: ARG001 - as Sphinx calls it
    """Make the lists of links in an index the site's table of contents: one part for each heading."""
    if Path(name).name != "index":
        return
    for part in re.split(r"^## ", source[0], flags=re.MULTILINE):
        linked = re.findall(r"^- \[[^\]]*\]\(([\w/-]+)\.md\)", part, flags=re.MULTILINE)
        caption = part.partition("\n")[0] if name == "index" else ""
        if linked:
            shown = f":caption: {caption}\n" if caption else ""
            source[0] += "\n```{toctree}\n:hidden:\n" + shown + "\n" + "\n".join(linked) + "\n```\n"


def lead_outside(app: Sphinx, document: nodes.document) -> None:
    """Let links to files of the repository lead to copies, and links to reports to their live pages."""
    page = app.env.docname
    up = "../" * page.count("/")
    needed = vars(app).setdefault("rooflens_live", set()), vars(app).setdefault("rooflens_files", set())
    for node in list(_outside(document)):
        target = Path(os.path.normpath(HERE / Path(page).parent / node["reftarget"]))
        target = next((found for found in (target, target.with_name(f"{target.name}.md")) if found.is_file()), None)
        if not target:
            continue
        if target.parent == PUBLISHED and target.suffix == ".ncu-rep":
            address = f"{up}{LIVE}/{target.stem}.html"
            needed[0].add(target.stem)
        elif target == VIEWER:
            address = f"{up}{OPEN}/index.html"
        else:
            name = str(target.relative_to(ROOT))
            readable = name if target.suffix in {".png", ".txt"} else f"{name}.txt"
            address = f"{up}{FILES}/{readable}"
            needed[1].add((name, readable))
        link = nodes.reference("", "", *(child.deepcopy() for child in node.children), refuri=address)
        paragraph = node.parent
        node.replace_self(link)
        if LIVE in address and isinstance(paragraph, nodes.paragraph) and len(paragraph.children) == 1:
            paragraph.parent.insert(
                paragraph.parent.index(paragraph) + 1,
                nodes.raw("", FRAME.format(address, link.astext().replace('"', "")), format="html"),
            )
    for image in list(document.findall(nodes.image)):
        live = PICTURED.get(Path(image["uri"]).stem)
        shown = in_both_themes(image, HERE / Path(page).parent)
        if live and not isinstance(image.parent, nodes.reference):
            needed[0].add(live)
            shown = [nodes.reference("", "", *shown, refuri=f"{up}{LIVE}/{live}.html")]
        image.replace_self(shown)


def in_both_themes(image: nodes.image, folder: Path) -> list[nodes.image]:
    """Return a picture, followed by the one for the dark theme if there is one: Furo shows one of the two."""
    place = Path(image["uri"])
    dark = place.with_stem(f"{place.stem}_dark")
    if not (folder / dark).is_file():
        return [image.deepcopy()]
    pair = []
    for uri, shown in ((place, "only-light"), (dark, "only-dark")):
        pair.append(image.deepcopy())
        pair[-1]["uri"] = uri.as_posix()
        pair[-1]["classes"].append(shown)
    return pair


def fold_navigation(app: Sphinx, name: str, template: str, context: dict[str, Any], document: object) -> None:  # noqa: ARG001 - as Sphinx calls it
    """List the pages of a folder beside its own pages only: with all on each page, building is quadratic."""
    tree = context["toctree"]
    context["toctree"] = lambda **options: tree(**options | {"collapse": True})


def _outside(document: nodes.document) -> Iterable[nodes.Element]:
    """Yield the links that are not pages of the site."""
    yield from document.findall(addnodes.download_reference)
    for node in document.findall(addnodes.pending_xref):
        if os.path.isabs(node["reftarget"]):  # noqa: PTH117 - MyST's text, no path yet
            yield node


def write_outside(app: Sphinx, failed: Exception | None) -> None:
    """Write the live pages and copies to which pages link."""
    if failed:
        return
    pages = live_pages()
    (Path(app.outdir) / LIVE).mkdir(exist_ok=True)
    for name in sorted(vars(app).get("rooflens_live", ())):
        file = Path(app.outdir) / LIVE / f"{name}.html"
        if app.config.rooflens_live not in ("", name):
            file.write_text("<!doctype html><title>left out of this build</title>", encoding="utf-8")
            continue
        done = CliRunner().invoke(main, [*pages[name], "-o", str(file), "--force"])
        if done.exit_code:
            raise ExtensionError(f"{name}: {done.output}")
    for name, readable in sorted(vars(app).get("rooflens_files", ())):
        copy = Path(app.outdir) / FILES / readable
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy)
    write_viewer(Path(app.outdir) / OPEN, is_whole=not app.config.rooflens_live)


def write_viewer(folder: Path, *, is_whole: bool) -> None:
    """Build the viewer; where it is left out, or cannot be had here, a page says so.

    Raises:
        ExtensionError: It could not be built, for another reason than a registry that does not answer.
    """
    shutil.rmtree(folder, ignore_errors=True)
    why = "left out of this build"
    if is_whole:
        command = [sys.executable, str(VIEWER.with_name("build.py")), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        if done.returncode == 0:
            return
        if done.returncode != NOT_HAD:
            raise ExtensionError(f"the viewer: {done.stderr}")
        why = "not in this build, which reached no registry of packages: `make viewer` builds it"
    folder.mkdir()
    text = f"<!doctype html><title>The viewer</title><p>The viewer is {why}."
    (folder / "index.html").write_text(text, encoding="utf-8")


class ConsoleLexer(BashSessionLexer):
    """Colour a `console` block as the tests read it: commands after `$ `, output otherwise, including `# Title`."""

    _venv = re.compile(r"(?!)")  # output may begin with a bracket
    _ps1rgx = re.compile(r"^(\$ )(.*\n?)")


def setup(app: Sphinx) -> None:
    """Register the site's additions; `-D rooflens_live=NAME` renders only that live page, to save time in tests."""
    app.add_config_value("rooflens_live", "", "html")
    app.add_lexer("console", ConsoleLexer)
    app.connect("builder-inited", write_reference)
    app.connect("source-read", fill_tables)
    app.connect("source-read", lead_to_pages)
    app.connect("source-read", add_contents)
    app.connect("doctree-read", lead_outside, priority=400)  # before Sphinx copies what is linked
    app.connect("html-page-context", fold_navigation, priority=400)  # before Furo asks for the tree
    app.connect("build-finished", write_outside)
