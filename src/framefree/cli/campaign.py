"""`framefree campaign`: a scenario many times, with settings that vary."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from framefree.cli.arguments import AsJson, scenario_of
from framefree.cli.printing import err, out

if TYPE_CHECKING:
    from framefree.campaign import Campaign
    from framefree.gallery.shared.campaigns import ScenarioRuns

WORST = 10
"""Runs that are listed with the command that repeats each."""


def campaign(
    name: Annotated[str, typer.Argument(help="A scenario of the gallery: see `framefree list`.")],
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="KEY=LOW:HIGH[:COUNT]",
            help="What varies; may be repeated. Also KEY=log:LOW:HIGH, KEY=normal:MEAN:DEVIATION, "
            "KEY=A,B,C; whole numbers LOW:HIGH for seeds.",
        ),
    ],
    folder: Annotated[Path, typer.Option("--out", help="New folder for the results.")],
    runs: Annotated[int | None, typer.Option(help="Number of runs; a grid has its own.")] = None,
    sample: Annotated[str, typer.Option(help="sobol, random or grid.")] = "sobol",
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting that does not vary."),
    ] = None,
    plant: Annotated[str | None, typer.Option(help="native or mujoco.")] = None,
    workers: Annotated[int, typer.Option(help="Processes on this machine.")] = 2,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is there.")] = False,
    metric: Annotated[
        str, typer.Option(help="By which the worst runs are found: those with the largest value.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Run a scenario many times with settings that vary; exit code 1 if a promise breaks."""
    from framefree.campaign import campaign as run_campaign
    from framefree.campaign import parsed
    from framefree.gallery.shared.campaigns import ScenarioRuns

    subject = ScenarioRuns(scenario_of(name, settings or [], plant))
    variations = dict(parsed(text) for text in vary)
    result = run_campaign(
        subject, variations, out=folder, sample=sample, runs=runs, seed=seed, workers=workers,
        resume=resume, progress=None if as_json else _told,
    )  # fmt: skip
    summary = _summary(subject, result, metric)
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        _print(summary)
    raise typer.Exit(0 if summary["failed"] == 0 and summary["success_rate"] == 1 else 1)


def _told(finished: int, total: int, failed: int, seconds: float) -> None:
    """Print how far it is, on one line that is written anew."""
    rate = finished / max(seconds, 1e-9)
    left = (total - finished) / max(rate, 1e-9)
    words = f"{finished} of {total} runs, {failed} failed, {rate:.3g} runs/s, {left:.0f} s left"
    err.print(words, end="\n" if finished == total else "\r", highlight=False)


def _summary(subject: "ScenarioRuns", result: "Campaign", metric: str) -> dict[str, Any]:
    """Return success rate, failures and the worst runs."""
    share, low, high = result.success("ok")
    rows = range(len(result.table["job"]))
    chosen = result.worst(metric, WORST) if metric else result.broken(WORST)
    commands = {
        int(result.table["job"][k]): subject.command(
            {key: values[k] for key, values in result.settings.items()}
        )
        for k in chosen.tolist()
        if k in rows
    }
    causes = sorted({str(cause) for cause in result.table["cause"] if cause})
    return {
        "name": subject.name,
        "runs": len(rows),
        "failed": int(result.failed.sum()),
        "success_rate": share,
        "success_low": low,
        "success_high": high,
        "causes": causes,
        "worst": commands,
        "folder": str(result.folder),
    }


def _print(summary: dict[str, Any]) -> None:
    share, low, high = (100 * summary[f"success_{k}"] for k in ("rate", "low", "high"))
    out.print(
        f"{summary['runs']} runs, all promises hold in {share:.4g} percent of them "
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
    out.print(f"results: {summary['folder']}", highlight=False, markup=False, soft_wrap=True)
