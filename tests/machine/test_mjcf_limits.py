"""Limits of MJCF actuators under gains and gears of either sign: MuJoCo clips as we read them."""

import itertools

import casadi as ca
import numpy as np
import pytest

from framefree.machine import Wrench
from framefree.machine.read import read
from framefree.motion import equations

mujoco = pytest.importorskip("mujoco")
SIGNS = [*itertools.product((1.0, -1.0), (1.0, -1.0))]
RANGES = [((-1.0, 3.0), (-2.0, 5.0)), ((-2.0, 0.5), (-7.0, 1.0)), (None, (-3.0, 8.0))]
INPUTS = np.linspace(-12.0, 12.0, 49)


def model_text(gain, gear, control, force):
    """Return a hinge with motor and servo and a site with a jet, of this gain, gear and limits."""
    limits = f'forcerange="{force[0]} {force[1]}" forcelimited="true"'
    if control is not None:
        limits += f' ctrlrange="{control[0]} {control[1]}" ctrllimited="true"'
    motor = f'gainprm="{2.5 * gain}" {limits}'
    return f"""
    <mujoco>
      <option gravity="0 0 0"/>
      <worldbody>
        <body name="arm">
          <joint name="hinge" axis="0 0 1"/>
          <inertial pos="0.2 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
          <site name="tip" pos="0.4 0.1 0"/>
        </body>
      </worldbody>
      <actuator>
        <general name="motor" joint="hinge" gear="{3 * gear}" {motor}/>
        <general name="servo" joint="hinge" gear="{2 * gear}" {motor} biastype="affine"
                 biasprm="0.3 -1.2 -0.4"/>
        <general name="jet" site="tip" gear="0 {gear} 0 0 0 {0.5 * gear}" {motor}/>
      </actuator>
    </mujoco>"""


def hinge_torque(machine, x, v, u):
    """Return the torque of the actuators on the hinge within their limits, as their fields say."""
    jacobian = equations(machine, "tree").functions["jacobian:tip"](x).full()[:, 0]
    torques = []
    for actuator in machine.actuators:
        own = np.clip(u, actuator.lower[0], actuator.upper[0])
        if isinstance(actuator, Wrench):
            torques.append(jacobian @ np.array(ca.DM(actuator.columns)).ravel() * own)
            continue
        gear, bias = actuator.gear[0], actuator.bias_terms
        force = actuator.gain * own + bias @ [1.0, gear * x[0], gear * v[0]]
        torques.append(gear * np.clip(force, actuator.force_lower, actuator.force_upper))
    return sum(torques)


def engine_torque(text, x, v, u):
    """Return the torque of the actuators on the hinge in MuJoCo."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = x, v
    data.ctrl[:] = u
    mujoco.mj_forward(model, data)
    return data.qfrc_actuator[0]


@pytest.mark.parametrize(("gain", "gear"), SIGNS)
@pytest.mark.parametrize(("control", "force"), RANGES)
def test_both_clip_at_the_same_inputs(gain, gear, control, force):
    text = model_text(gain, gear, control, force)
    machine = read(text)
    again = machine.to_mjcf()
    x, v = np.array([0.7]), np.array([-1.3])
    found = [hinge_torque(machine, x, v, u) for u in INPUTS]
    for described in (text, again):
        expected = [engine_torque(described, x, v, u) for u in INPUTS]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("gain", [1.0, -1.0])
def test_a_thruster_is_limited_by_its_force_from_the_right_side(gain):
    """f = gain u within [-3, 8]: with gain -2.5 the input lies within [-3.2, 1.2]."""
    machine = read(model_text(gain, 1.0, None, (-3.0, 8.0)))
    jet = machine.actuators[2]
    ends = np.array([-3.0, 8.0]) / (2.5 * gain)
    np.testing.assert_allclose([jet.lower[0], jet.upper[0]], np.sort(ends))
