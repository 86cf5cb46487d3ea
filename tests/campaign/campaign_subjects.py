"""Subjects for tests of campaigns; worker processes import them from here."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from simulate_machines import PD, pendulum

from framefree.campaign import CampaignSubject, Simulations
from framefree.simulate import Noise, Pulse


@dataclass(frozen=True)
class Square(CampaignSubject):
    """Gives x^2; some jobs misbehave, and every run leaves a line in a log."""

    log: str = ""
    broken: float | None = None
    deadly: float | None = None
    sleepy: float | None = None
    hungry: float | None = None
    name: str = "square"
    keys: tuple[str, ...] = ("x", "y")

    def run(self, settings):
        x = settings["x"]
        if self.log:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(f"{x!r}\n")
        if x == self.broken:
            raise ValueError("x is broken")
        if x == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        if x == self.sleepy:
            time.sleep(60)
        if x == self.hungry:
            raise MemoryError("too much")
        return {"square": x * x, "ok": float(x < 7)}

    def describe(self):
        return {"name": self.name}


def lines(path):
    return sorted(float(line) for line in Path(path).read_text().split())


def last_angle(run):
    return run.x[:, -1, 0]


def swings():
    machine = pendulum(2)
    options = {
        "duration": 0.2, "dt": 1e-3, "control_dt": 2e-3, "noise": Noise(1e-2, 1e-2), "delay": 1,
    }  # fmt: skip
    metrics = {"last": last_angle, "largest": lambda run: np.abs(run.x).max(axis=(1, 2))}
    return Simulations(metrics, machine, PD(machine), options=options)


def pushed_swings():
    """Return two rods under a plain function as a law, pushed at the first joint."""
    machine = pendulum(2)
    joint = machine.joints[0].name
    return Simulations(
        {"last": last_angle},
        machine,
        lambda t, x, v: -20 * x - 2 * v,
        options={"duration": 0.05, "dt": 1e-3, "disturbances": (Pulse(joint, (1.0,)),)},
    )


@dataclass(frozen=True)
class Noisy(CampaignSubject):
    """Gives a number whose bits depend on every bit of x, after a moment."""

    seconds: float = 0.005
    name: str = "noisy"
    keys: tuple[str, ...] = ("x",)

    def run(self, settings):
        time.sleep(self.seconds)
        x = settings["x"]
        rng = np.random.default_rng(int(x * 2**52))
        return {"sum": float(np.sin(rng.normal(size=100) * x).sum()), "ok": 1.0}

    def describe(self):
        return {"name": self.name}
