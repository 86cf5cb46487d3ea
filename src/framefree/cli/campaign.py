"""`framefree campaign`: a scenario many times, with settings that vary."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from framefree.cli.arguments import AsJson, scenario_of
from framefree.cli.printing import err, out
from framefree.errors import FramefreeError

if TYPE_CHECKING:
    from framefree.campaign import Campaign, Falsification, Searched
    from framefree.gallery.shared.campaigns import ScenarioRuns

WORST = 10
"""Runs that are listed with the command that repeats each."""


def campaign(
    name: Annotated[str, typer.Argument(help="A scenario of the gallery: see `framefree list`.")],
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=LOW:HIGH[:COUNT]",
            help="What varies; may be repeated. Also KEY=log:LOW:HIGH, KEY=normal:MEAN:DEVIATION, "
            "KEY=A,B,C; whole numbers LOW:HIGH for seeds. KEY is a setting, or of a scenario with "
            "one closed loop x0.NAME, v0.NAME, e0.NAME, seed, BODY.mass, push.FRAME.fx, gain.NAME.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="New folder for the results; default runs/NAME-campaign, ..."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Number of runs; a grid has its own; a search has 2000.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(help="sobol (default), random, grid or saltelli.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting that does not vary."),
    ] = None,
    plant: Annotated[str | None, typer.Option(help="native or mujoco.")] = None,
    workers: Annotated[int, typer.Option(help="Threads or processes on this machine.")] = 2,
    keep: Annotated[
        str | None,
        typer.Option(
            help="What is kept of each run: metrics (default of a search), thinned (default) or "
            "full."
        ),
    ] = None,
    tries: Annotated[
        int, typer.Option(help="How often a run is tried whose worker dies or hangs.")
    ] = 3,
    patience: Annotated[
        float, typer.Option(help="Seconds after which a worker counts as hanging.")
    ] = 3600.0,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="A Dask scheduler, whose workers run it."),
    ] = None,
    local_cluster: Annotated[
        int, typer.Option(metavar="N", help="Or N workers of a Dask cluster on this machine.")
    ] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is there.")] = False,
    search: Annotated[
        str | None,
        typer.Option(help='"worst" looks for settings that break a promise, by CMA-ES.'),
    ] = None,
    metric: Annotated[
        str, typer.Option(help="By which the worst runs are found: those with the largest value.")
    ] = "",
    smallest: Annotated[
        bool, typer.Option("--smallest", help="Small values of the metric are the bad ones.")
    ] = False,
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Make this one run instead, and its own report."),
    ] = None,
    show_report: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report in a browser.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario many times with settings that vary; exit code 1 if a promise breaks."""
    from framefree.gallery.shared.campaigns import ScenarioRuns

    subject = ScenarioRuns(scenario_of(name, settings or [], plant))
    if at:
        if vary or search or resume:
            raise FramefreeError("`--at` makes one run: leave out `--vary`, `--search`, `--resume`")
        _one_run(subject, at, folder, show_report, as_json)
    if search is not None and search != "worst":
        raise FramefreeError(f"`--search` must be worst, got {search}")
    how: dict[str, Any] = {
        "vary": _ranges(vary or []),
        "out": folder or _new_folder(name, resume),
        "seed": seed,
        "workers": workers,
        "metric": metric,
        "resume": resume,
        "tries": tries,
        "patience": patience,
        "cluster": cluster,
        "local_cluster": local_cluster,
        "progress": None if as_json else _told,
    }
    try:
        if search is None:
            how |= {"runs": runs, "sample": sample or "sobol", "keep": keep or "thinned"}
            page, ok = _campaign(subject, how, smallest, as_json)
        else:
            if not metric:
                raise FramefreeError("`--search worst` needs `--metric KEY`: what is to become bad")
            if sample is not None:
                raise FramefreeError("`--search` draws its own runs: leave out `--sample`")
            how |= {"runs": 2000 if runs is None else runs, "smallest": smallest}
            page, ok = _search(subject, {**how, "keep": keep or "metrics"}, as_json)
    except KeyboardInterrupt:
        err.print(
            f"\ninterrupted: what was finished is in {how['out']}, and the same command with "
            f"--out {how['out']} --resume continues",
            style="bold red", highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip
        raise typer.Exit(130) from None
    _open(page, show_report)
    raise typer.Exit(0 if ok else 1)


def _ranges(vary: list[str]) -> dict[str, str]:
    """Return the ranges by what varies."""
    ranges: dict[str, str] = {}
    for text in vary:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals and value.strip()):
            raise FramefreeError(f"`--vary` takes KEY=LOW:HIGH[:COUNT], got `{text}`")
        if key.strip() in ranges:
            raise FramefreeError(f"`--vary` has `{key.strip()}` twice")
        ranges[key.strip()] = value.strip()
    return ranges


def _campaign(
    subject: "ScenarioRuns", how: dict[str, Any], smallest: bool, as_json: bool
) -> tuple[Path, bool]:
    """Run a campaign; return its report, and whether all promises hold."""
    from framefree.campaign import campaign as run_campaign
    from framefree.look.report import write
    from framefree.look.report.campaign_page import campaign_page

    result, metric = run_campaign(subject, **how), how["metric"]
    content = campaign_page(result, subject, metric=metric, smallest=smallest)
    page = write(content, result.folder / "report.html")
    summary = {**_summary(subject, result, metric, smallest), "report": str(page)}
    print(json.dumps(summary, indent=2)) if as_json else _print(summary)
    return page, summary["failed"] == 0 and summary["success_rate"] == 1


def _search(subject: "ScenarioRuns", how: dict[str, Any], as_json: bool) -> tuple[Path, bool]:
    """Search for a broken promise; return the report, and whether none was found."""
    from framefree.campaign import falsify
    from framefree.look.report import write
    from framefree.look.report.campaign_page import search_page

    found, folder = falsify(subject, **how), Path(how["out"])
    page = write(search_page(found, subject), folder / "report.html")
    summary = {**_search_summary(subject, found, folder), "report": str(page)}
    print(json.dumps(summary, indent=2)) if as_json else _print_search(summary, found)
    return page, found.search.violation is None


def _new_folder(name: str, resume: bool) -> Path:
    """Return the first of runs/NAME-campaign, runs/NAME-campaign-2, ... that is new."""
    if resume:
        raise FramefreeError("`--resume` needs the folder to go on with: give `--out`")
    plain = Path("runs") / f"{name}-campaign"
    path, number = plain, 2
    while path.exists():
        path, number = plain.with_name(f"{plain.name}-{number}"), number + 1
    return path


def _one_run(
    subject: "ScenarioRuns", at: list[str], folder: Path | None, show: bool, as_json: bool
) -> None:
    """Make one run of a campaign again, bit for bit, write its report, and exit."""
    result = subject.repeat(dict(_setting(text) for text in at))
    place = folder or _new_folder(f"{subject.name}-run", False)
    page = result.run.report(place / "report.html", title=f"{subject.name}: one run")
    if as_json:
        print(json.dumps({**result.metrics, **({"cause": result.cause} if result.cause else {})},
                         indent=2))  # fmt: skip
    else:
        for key, value in result.metrics.items():
            out.print(f"{key}: {value:.12g}", highlight=False)
        if result.cause:
            out.print(f"failed: {result.cause}", highlight=False, markup=False, soft_wrap=True)
        out.print(f"report: {page}", highlight=False, markup=False, soft_wrap=True)
    _open(page, show)
    raise typer.Exit(0 if not result.cause and result.metrics.get("ok", 1.0) > 0 else 1)


def _open(page: Path, show: bool) -> None:
    if show:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _setting(text: str) -> tuple[str, Any]:
    from framefree.campaign.variation import value_of

    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise FramefreeError(f"`--at` takes KEY=VALUE, got `{text}`")
    return key.strip(), value_of(value)


def _told(finished: int, total: int, failed: int, seconds: float, new: int) -> None:
    """Print how far it is, on one line that is written anew."""
    rate = new / max(seconds, 1e-9)
    left = (total - finished) / max(rate, 1e-9)
    words = f"{finished} of {total} runs, {failed} failed, {rate:.3g} runs/s, {left:.0f} s left"
    err.print(f"{words:<78}", end="\n" if finished == total else "\r", highlight=False)


def _summary(
    subject: "ScenarioRuns", result: "Campaign", metric: str, smallest: bool
) -> dict[str, Any]:
    """Return success rate, failures and the worst runs."""
    from framefree.campaign.simulations import USED

    share, low, high = result.success("ok")
    metric = metric or (USED if USED in result.metrics else "")
    chosen = result.worst(metric, WORST, largest=not smallest) if metric else result.broken(WORST)
    commands = {
        int(result.table["job"][k]): subject.command(result.settings_of(k)) for k in chosen.tolist()
    }
    causes = sorted({str(cause) for cause in result.table["cause"] if cause})
    return {
        "name": subject.name,
        "runs": len(result.table["job"]),
        "failed": int(result.failed.sum()),
        "promises": "ok" in result.metrics,
        "success_rate": share,
        "success_low": low,
        "success_high": high,
        "causes": causes,
        "worst": commands,
        "folder": str(result.folder),
    }


def _print(summary: dict[str, Any]) -> None:
    share, low, high = (100 * summary[f"success_{k}"] for k in ("rate", "low", "high"))
    what = "all promises hold in" if summary["promises"] else "without promises, to their end came"
    out.print(
        f"{summary['runs']} runs, {what} {share:.4g} percent of them "
        f"(95 percent interval {low:.3g} to {high:.3g})",
        highlight=False,
    )
    if summary["failed"]:
        out.print(f"{summary['failed']} runs failed:", style="bold red", highlight=False)
        for cause in summary["causes"][:WORST]:
            out.print(Text(f"  {cause}"), soft_wrap=True)
    if summary["worst"]:
        table = Table(title="worst runs, each with the command that repeats it", box=None)
        for column in ("run", "command"):
            table.add_column(column, no_wrap=column == "run", overflow="fold")
        for job, command in summary["worst"].items():
            table.add_row(str(job), Text(command))
        out.print(table)
    out.print(f"report: {summary['report']}", highlight=False, markup=False, soft_wrap=True)


def _search_summary(
    subject: "ScenarioRuns", found: "Falsification", folder: Path
) -> dict[str, Any]:
    def told(one: "Searched") -> dict[str, Any]:
        violation = one.violation
        return {
            "violated": violation is not None,
            "runs": one.runs,
            "runs_to_violation": None if violation is None else violation + 1,
            "worst": one.worst,
            "settings": one.settings,
            "command": subject.command(one.settings),
        }

    return {
        "name": subject.name,
        "metric": found.search.metric,
        "budget": found.budget,
        "search": told(found.search),
        "random": told(found.random),
        "words": found.words(),
        "folder": str(folder),
    }


def _print_search(summary: dict[str, Any], found: "Falsification") -> None:
    out.print(found.words(), highlight=False)
    for name, title in (("search", "the search"), ("random", "random search")):
        one = summary[name]
        out.print(f"{title}: {summary['metric']} {one['worst']:.6g}", highlight=False)
        out.print(Text(f"  {one['command']}"), soft_wrap=True)
    out.print(f"report: {summary['report']}", highlight=False, markup=False, soft_wrap=True)
