"""Writes the site: every machine's pages, in as many processes as there are cores. Same history, same bytes."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinbench_reports.documents.load import Documents
from twinbench_reports.files import make_folder, write_file
from twinbench_reports.load import Record
from twinbench_reports.render.html import environment
from twinbench_reports.site import pages
from twinbench_reports.site.gather import Gathered, Machine, distinct_slugs, gather
from twinbench_reports.site.narrow import by_component, by_scenario
from twinbench_reports.site.rows import ComponentRow, component_rows
from twinbench_reports.site.sources import source_files
from twinbench_reports.store.run import Run

_AT_ONCE = 4  # pages that a process takes at a time


@dataclass(frozen=True)
class Page:
    """A file of the site, and how its context is made when its turn comes."""

    path: str
    template: str
    context: Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class View:
    """A machine with the parts of its record that pages are made of."""

    machine: Machine
    folder: str  # of its pages: "" for the first machine
    components: dict[str, Record]
    scenarios: dict[str, Record]
    rows: Sequence[ComponentRow]


def build(history: Path, out: Path, *, documents: Documents | None, tree: Path | None = None, source_url: str = "",
          pair: Sequence[str] = (), jobs: int = 0) -> tuple[Gathered, int]:
    """(what was shown, how many pages). Files in `out` that are of an earlier history stay."""
    found = gather(history)
    todo = list(site_pages(found, documents, tree, source_url, pair))
    for folder in sorted({(out / page.path).parent for page in todo}):
        make_folder(folder)
    global _todo, _out
    _todo, _out = todo, out
    jobs = min(jobs or os.cpu_count() or 1, len(todo))
    if jobs == 1:
        for place in range(len(todo)):
            _write(place)
    else:
        with multiprocessing.get_context("fork").Pool(jobs, _end_quietly) as pool:  # the records are shared, not sent
            pool.map(_write, range(len(todo)), chunksize=_AT_ONCE)
            pool.close()
            pool.join()  # else they are sent SIGTERM, perhaps while one holds the lock that another waits for
    return found, len(todo)


def _end_quietly() -> None:
    """In a process of the pool: the parent alone says that it was interrupted, and ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


_todo: list[Page] = []
_out = Path()


def _write(place: int) -> None:
    page = _todo[place]
    write_file(_out / page.path, environment().get_template(page.template).render(page.context()))


def site_pages(found: Gathered, documents: Documents | None, tree: Path | None, source_url: str,
               pair: Sequence[str]) -> Iterator[Page]:
    """Every page of every machine that kept a record; a history without one has a page of its machines."""
    shown = [machine for machine in found.machines if machine.record]
    components = distinct_slugs(sorted({component["id"] for machine in shown
                                        for component in machine.record.block["components"]}))
    scenarios = distinct_slugs(sorted({row["name"] for machine in shown for row in machine.record.block["scenarios"]}))
    views = []
    for machine in shown:
        parts = by_component(machine.record)
        views.append(View(machine, f"on/{machine.slug}/" if views else "", parts, by_scenario(machine.record),
                          component_rows(machine, parts, components)))
    folders = {view.machine.name: view.folder for view in views}
    for view in views:
        yield from _machine_pages(view, views, found, documents, tree, source_url, pair, components, scenarios, folders)
    if not views:
        yield Page("index.html", "site/machines.html.j2",
                   lambda: pages.machines(found.machines[0], found.machines, {}, found.refused))


def _machine_pages(view: View, views: Sequence[View], found: Gathered, documents: Documents | None, tree: Path | None,
                   source_url: str, pair: Sequence[str], components: dict[str, str], scenarios: dict[str, str],
                   folders: dict[str, str]) -> Iterator[Page]:
    machine, folder = view.machine, view.folder
    up = "../../" if folder else ""  # from the machine's pages to the site's
    links = {name: up + other for name, other in folders.items()}
    yield Page(f"{folder}index.html", "site/overview.html.j2", lambda: pages.overview(machine, view.rows, scenarios))
    yield Page(f"{folder}report.html", "report.html.j2", lambda: pages.whole_report(machine, documents))
    yield Page(f"{folder}claims.html", "site/claims.html.j2", lambda: pages.claims(machine, documents))
    yield Page(f"{folder}machines.html", "site/machines.html.j2",
               lambda: pages.machines(machine, found.machines, links, found.refused))
    yield Page(f"{folder}compare.html", "site/compare.html.j2", lambda: pages.compared(machine, chosen(machine, pair)))
    for row in view.rows:
        elsewhere = [(other.machine.name, f"../{up}{other.folder}components/{mine.slug}.html", mine)
                     for other in views if other is not view for mine in other.rows if mine.id == row.id]
        yield Page(f"{folder}components/{row.slug}.html", "site/component.html.j2",
                   lambda row=row, elsewhere=elsewhere: pages.component(
                       machine, view.components[row.id], row, elsewhere, source_files(tree, row.id), source_url))
    for name, part in view.scenarios.items():
        yield Page(f"{folder}scenarios/{scenarios[name]}.html", "site/scenario.html.j2",
                   lambda name=name, part=part: pages.scenario(machine, name, part))


def chosen(machine: Machine, pair: Sequence[str]) -> tuple[Run, Run] | None:
    """The two runs to compare: those of the given revisions (the newest of each) where the machine has both, else the
    newest two."""
    named = [next((run for run in reversed(machine.runs) if run.revision.startswith(name)), None) for name in pair]
    if len(named) == 2 and all(named):
        return named[0], named[1]
    return (machine.runs[-2], machine.runs[-1]) if len(machine.runs) > 1 else None
