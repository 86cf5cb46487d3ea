"""What was simulated, from the header of a run."""

from io import StringIO
from typing import Any

from rich.console import Console

from framefree.look.report.prose import brief, number
from framefree.look.show import describe
from framefree.machine import Machine
from framefree.simulate.run import Run

_OPTIONS = {
    "control_dt": "control period",
    "lag": "drives",
    "noise": "noise of measurements",
    "delay": "delay",
    "predict": "prediction",
    "seed": "seed",
}
_UNITS = {"control_dt": " s", "delay": " control periods"}
ENDLESS = 1e8
"""Duration, s, from which on a run ends when somebody says so, as a live session does."""
FEW = 8
"""Events that are told one by one."""


def facts_of(run: Run) -> dict[str, str]:
    """Return what is worth telling of a run, as label and text."""
    meta = run.meta
    options = meta.get("options", {})
    facts: dict[str, str] = {"status": _status(run)}
    facts["machine"] = _machine(run)
    facts["law"] = _named(meta.get("law")) or "none: all inputs are zero"
    facts["reference"] = _named(meta.get("reference"))
    facts["plant"] = _plant(run)
    facts["integrator"] = _integrator(run)
    for key, label in _OPTIONS.items():
        value = options.get(key)
        shown = value is not None and value is not False and not (key == "delay" and not value)
        if shown and (key != "seed" or options.get("noise") is not None):
            facts[label] = brief(value) + _UNITS.get(key, "")
    facts["disturbances"] = "; ".join(brief(item) for item in meta.get("disturbances", []))
    facts["events"] = _events(meta.get("events", []))
    facts["warnings"] = "; ".join(meta.get("warnings", []))
    if "applied_by_us" in meta:
        ours = ", ".join(meta["applied_by_us"])
        facts["forces computed by framefree and applied to MuJoCo"] = ours or "none"
    facts["parameters"] = _parameters(run)
    if "wall_seconds" in meta:
        facts["time it took"] = f"{meta['wall_seconds']:.3g} s"
    facts["started"] = str(meta.get("started", ""))
    versions = meta.get("versions", {})
    facts["versions"] = ", ".join(f"{name} {version}" for name, version in versions.items())
    return {label: text for label, text in facts.items() if text}


def _events(items: list[Any]) -> str:
    """Return events in words, the first few where there are many."""
    texts = [_event(item) for item in items[:FEW]]
    more = [f"and {len(items) - FEW} more"] if len(items) > FEW else []
    return "; ".join(texts + more)


def machine_text(machine: Machine) -> str:
    """Return the machine as a readable tree."""
    console = Console(file=StringIO(), width=110, no_color=True, legacy_windows=False)
    console.print(describe(machine))
    file = console.file
    text = file.getvalue() if isinstance(file, StringIO) else ""
    return "\n".join(line.rstrip() for line in text.splitlines())


def _status(run: Run) -> str:
    end = f" at {run.t[-1]:.6g} s" if len(run.t) and run.status != "finished" else ""
    rows = f", {len(run):,} rows" + (f" of {run.batch:,} trajectories" if run.batch else "")
    failure = f": {run.meta['failure']}" if "failure" in run.meta else ""
    return f"{run.status}{end}{rows}{failure}"


def _machine(run: Run) -> str:
    machine, data = run.machine, run.meta.get("machine")
    if machine is None:
        name = data.get("name", "") if isinstance(data, dict) else ""
        return f"{name} (it has parts that live only in Python)".strip()
    counts = {
        "bodies": len(machine.bodies),
        "coordinates": machine.nx,
        "velocities": machine.nv,
        "inputs": machine.nu,
        "loops": len(machine.loops),
    }
    words = ", ".join(f"{count} {_one(name, count)}" for name, count in counts.items() if count)
    return f"{machine.name}: {words}" if machine.name else words


def _one(name: str, count: int) -> str:
    return {"bodies": "body", "velocities": "velocity"}.get(name, name[:-1]) if count == 1 else name


def _named(data: Any) -> str:
    if not isinstance(data, dict):
        return "" if data is None else str(data)
    rest = {k: v for k, v in data.items() if k not in ("name", "type", "machine")}
    inner = brief({k: v for k, v in rest.items() if v not in (None, [], {})})
    name = str(data.get("name") or data.get("type") or "")
    return f"{name} ({inner})" if inner else name


def _plant(run: Run) -> str:
    meta, machine = run.meta, run.machine
    plant = str(meta.get("options", {}).get("plant", "native"))
    if plant == "mujoco":
        return f"MuJoCo {meta.get('versions', {}).get('mujoco', '')}".strip()
    formulation = meta.get("formulation")
    if formulation is None and machine is not None:
        formulation = "constrained" if machine.closed else "tree"
    return f"{plant}, {formulation} formulation" if formulation else plant


def _integrator(run: Run) -> str:
    options = run.meta.get("options", {})
    name = brief(run.meta.get("integrator", ""))
    step, duration = options.get("dt"), options.get("duration")
    words = [name]
    if step is not None:
        words.append(f"steps of {number(step)} s")
    if duration is not None and duration < ENDLESS:
        words.append(f"for {number(duration)} s")
    choice = run.meta.get("integrator_choice", "")
    reason = f" ({choice})" if " at " in choice else ""
    return ", ".join(words[:2]) + (f" {words[2]}" if len(words) > 2 else "") + reason


def _event(item: dict[str, Any]) -> str:
    rest = {k: v for k, v in item.items() if k not in ("at", "time")}
    return f"at {number(item.get('at'))} s: {brief(rest)}"


def _parameters(run: Run) -> str:
    names = () if run.machine is None else run.machine.parameters.names
    values = run.meta.get("parameters") or []
    if not names or len(values) != len(names) or isinstance(values[0], list):
        return ""
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} = {number(value)}" for name, value in pairs)
