"""MJCF models that between them use everything the reader knows."""

import numpy as np

EVERYTHING = """
<mujoco model="everything">
  <compiler angle="degree" eulerseq="zyx" autolimits="true"/>
  <option gravity="0.3 -0.2 -9.7" timestep="0.001">
    <flag contact="disable"/>
  </option>
  <default>
    <joint armature="0.02" damping="0.3"/>
    <geom density="700" rgba="0.2 0.4 0.6 1"/>
    <default class="springy">
      <joint stiffness="12" springref="20" damping="0.7"/>
    </default>
  </default>
  <asset>
    <mesh name="wedge" vertex="0 0 0  0.2 0 0  0 0.3 0  0 0 0.25"/>
  </asset>
  <worldbody>
    <light pos="0 0 3"/>
    <geom name="floor" type="plane" size="3 3 0.1"/>
    <site name="corner" pos="0.1 0.2 0.3" euler="10 20 30"/>
    <body name="pedestal" pos="0 0 0.4" euler="10 -20 35">
      <geom type="cylinder" size="0.1 0.2"/>
      <body name="shoulder" pos="0.1 0 0.2" quat="0.9 0.1 -0.2 0.3">
        <joint name="pan" axis="0 0.2 1" pos="0.02 0.01 0" ref="15" range="-90 120"/>
        <joint name="lift" type="slide" axis="1 0 0.3" pos="0.1 0 0" ref="0.1" range="-0.2 0.4"/>
        <joint name="tilt" class="springy" axis="0 1 0" pos="-0.03 0 0.02"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0.1 0"/>
        <geom type="box" size="0.05 0.03 0.02" pos="0 0.1 0" euler="20 0 10"/>
        <frame pos="0.3 0.1 0" euler="0 30 0">
          <site name="elbow_mark" pos="0.01 0 0.02" euler="5 0 0"/>
          <body name="forearm">
            <joint name="elbow" type="ball" stiffness="3" damping="0.05" pos="0.01 0 0"/>
            <geom type="ellipsoid" size="0.05 0.04 0.2" pos="0 0 0.2"/>
            <body name="palm" pos="0 0 0.4" euler="0 0 45">
              <geom type="mesh" mesh="wedge"/>
              <site name="palm" pos="0 0 0.05"/>
            </body>
          </body>
        </frame>
        <body name="counterweight" pos="-0.2 0 0">
          <inertial mass="2.5" pos="0.01 -0.02 0.03" fullinertia="0.03 0.02 0.04 0.001 -0.002
          0.003"/> <joint name="swing" axis="1 1 1"/>
        </body>
      </body>
    </body>
    <body name="drone" pos="1 0 1" euler="0 45 0">
      <freejoint/>
      <geom type="sphere" size="0.1"/>
      <site name="rotor" pos="0.2 0 0.05" euler="0 12 0"/>
      <body name="gimbal" pos="0 0 -0.1">
        <joint type="hinge" axis="0 1 0"/>
        <geom type="box" size="0.05 0.05 0.05"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="pan_motor" joint="pan" gear="30" ctrlrange="-2 2"/>
    <position name="lift_servo" joint="lift" kp="200" kv="10" forcerange="-50 50"/>
    <velocity name="swing_servo" joint="swing" kv="4"/>
    <general name="wide" joint="tilt" gear="3" gainprm="2" biastype="affine" biasprm="1 -4 -0.5"/>
    <motor name="wrist" joint="elbow" gear="1 2 -0.5"/>
    <general name="thrust" site="rotor" gear="0.1 0.2 1 0.03 0 0.02" gainprm="2" ctrlrange="0 20"/>
  </actuator>
  <keyframe>
    <key name="home" qpos="0.1 0.2 0.3 0.8 0.6 0 0 -0.4 1 2 3 0.6 0.48 0.64 0 0.5"
         qvel="1 2 3 4 5 6 7 8 9 10 11 12 13 14" ctrl="1 2 3 4 5 6"/>
  </keyframe>
</mujoco>
"""

LINKAGE = """
<mujoco model="linkage">
  <option><flag contact="disable"/></option>
  <worldbody>
    <site name="anchor" pos="0.4 0.1 0.2" euler="20 30 0"/>
    <body name="crank">
      <joint name="a" axis="0 1 0" ref="20"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0"/>
      <body name="rod" pos="0.2 0 0">
        <joint name="b" axis="0 1 0.1" ref="35"/>
        <joint name="c" type="slide" axis="1 0 0" ref="-0.1"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0.1"/>
        <site name="tip" pos="0.3 0 0.1" euler="0 10 0"/>
      </body>
    </body>
    <body name="plate" pos="0.2 0.3 0.1" euler="10 20 30">
      <freejoint name="plate_free"/>
      <geom type="box" size="0.1 0.2 0.05"/>
      <site name="plate_site" pos="0.05 0.05 0" euler="0 0 15"/>
    </body>
    <body name="wheel" pos="0 0.5 0">
      <joint name="d" axis="0 0 1" ref="-25"/>
      <geom type="cylinder" size="0.1 0.02"/>
    </body>
  </worldbody>
  <equality>
    <connect name="pin" body1="rod" body2="plate" anchor="0.1 0 0.02"/>
    <connect name="pin_sites" site1="tip" site2="plate_site"/>
    <connect name="pin_world" body1="rod" anchor="0.3 0.1 0"/>
    <weld name="glue" body1="crank" body2="plate" relpose="0.1 0.2 0.3 0.7 0.1 0.5 0.2"
          anchor="0.05 -0.04 0.03"/>
    <weld name="glue_sites" site1="anchor" site2="plate_site"/>
    <weld name="glue_here" body1="rod" body2="wheel"/>
    <joint name="gear" joint1="a" joint2="d" polycoef="0.1 -2 0 0 0"/>
    <joint name="cam" joint1="c" joint2="b" polycoef="0.1 0.5 -0.2 0.3 0.05"/>
    <joint name="hold" joint1="d" polycoef="0.7 0 0 0 0"/>
    <weld name="off" body1="crank" body2="wheel" active="false"/>
  </equality>
</mujoco>
"""


def random_mjcf(seed: int) -> str:
    """Return a random tree of bodies with all kinds of joints, offsets, and inertias."""
    rng = np.random.default_rng(seed)
    numbers = iter(range(1000))

    def vector(size, scale=1.0):
        return " ".join(f"{value:.6g}" for value in rng.normal(size=size) * scale)

    def joint(kind):
        extra = f' ref="{rng.normal():.4g}" axis="{vector(3)}"' if kind != "ball" else ""
        return (
            f'<joint name="j{next(numbers)}" type="{kind}" pos="{vector(3, 0.2)}"{extra} '
            f'armature="{rng.uniform(0, 0.1):.4g}" damping="{rng.uniform(0, 1):.4g}" '
            f'stiffness="{rng.choice([0, 3.0])}"/>'
        )

    def body(depth):
        inertia = rng.uniform(0.1, 0.15, 3)
        root_free = depth == 0 and rng.random() < 0.3
        kinds = list(rng.choice(["hinge", "slide"], rng.integers(3)))
        if rng.random() < 0.3 or (depth == 0 and not kinds):
            kinds.append("ball")  # MuJoCo allows one in a body, as the last
        joints = "<freejoint/>" if root_free else "".join(map(joint, kinds))
        children = "".join(body(depth + 1) for _ in range(rng.integers(3) if depth < 3 else 0))
        return (
            f'<body name="b{next(numbers)}" pos="{vector(3, 0.3)}" quat="{vector(4)}">{joints}'
            f'<inertial mass="{rng.uniform(0.5, 2):.4g}" pos="{vector(3, 0.1)}" '
            f'quat="{vector(4)}" diaginertia="{inertia[0]:.4g} {inertia[1]:.4g} {inertia[2]:.4g}"/>'
            f'<site name="s{next(numbers)}" pos="{vector(3)}" quat="{vector(4)}"/>{children}</body>'
        )

    bodies = "".join(body(0) for _ in range(2))
    return f'<mujoco><compiler angle="radian"/><worldbody>{bodies}</worldbody></mujoco>'
