"""Every quantity of the tree formulation against Pinocchio, on every robot of example-robot-data.

Mimic joints move by themselves on both sides. Accelerations are compared only where the mass matrix
is well conditioned: elsewhere Pinocchio disagrees with itself.
"""

import casadi as ca
import numpy as np
import pytest
from model_kinematics import example_urdfs
from random_machines import without_forces

from framefree.machine.layouts import layout
from framefree.machine.read import read
from framefree.motion.regressor import moments_of_vector
from framefree.motion.tree import Tree
from framefree.motion.unknowns import unknown_paths

pin = pytest.importorskip("pinocchio", reason="needs the extra `peers`")

# ur3.urdf has an element without a name: no engine loads it.
URDFS = {name: path for name, path in example_urdfs().items() if not name.endswith("/ur3.urdf")}
STATES = 100
BAR = 1e-10


LARGE = ("tiago", "romeo", "talos", "g1_", "alex", "human", "icub", "centauro")


def robots():
    """Every robot, floating and fixed; of the largest the fixed ones are marked slow."""
    for name in URDFS:
        yield name, "free"
        large = any(word in name for word in LARGE)
        yield pytest.param(name, "fixed", marks=[pytest.mark.slow] if large else [])


@pytest.mark.parametrize(("name", "base"), list(robots()))
@pytest.mark.first_cases(30)
def test_dynamics_agree(name, base):
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    model = pin.buildModelFromUrdf(str(URDFS[name]), *root)
    if model.nv == 0:
        pytest.skip("nothing moves in this file")
    machine = without_forces(read(URDFS[name], base=base, mimic="independent"), gravity=True)
    peer = Peer(machine, model)
    compared = peer.compared()
    # Where these vanish, what is left is rounding of terms of this size.
    floor = {"jacobian_rate": 1.0, "coriolis": np.abs(compared["mass"][1]).max()}
    for quantity, (ours, theirs) in compared.items():
        assert_rows_agree(quantity, ours, theirs, floor.get(quantity, 1e-9))


@pytest.mark.parametrize("name", URDFS)
@pytest.mark.parametrize("base", ["free", pytest.param("fixed", marks=pytest.mark.slow)])
@pytest.mark.first_cases(1)
def test_regressors_agree(name, base):
    """Columns by m, m c, and I about the joint frame (xx, xy, yy, xz, yz, zz) there."""
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    model = pin.buildModelFromUrdf(str(URDFS[name]), *root)
    if model.nv == 0:
        pytest.skip("nothing moves in this file")
    machine = without_forces(read(URDFS[name], base=base, mimic="independent"), gravity=True)
    peer = Peer(machine.tunable(*unknown_paths(machine, ["bodies"])), model, states=3)
    ours = peer.ours("regressor", peer.x, peer.v, peer.a)[0]
    theirs = peer.theirs(lambda q, v, a: pin.computeJointTorqueRegressor(model, peer.data, q, v, a))
    columns = [peer._index(joint) - 1 for joint in machine.joints]
    massive = [not body.massless for body in machine.bodies]
    theirs = theirs[:, peer.place].reshape(3, model.nv, -1, 10)[:, :, columns] @ _their_ten()
    assert_rows_agree("regressor", ours, theirs[:, :, massive], 1e-9)


def _their_ten():
    """The matrix (10 x 10) from our ten numbers of a body to theirs."""
    columns = []
    for unit in np.eye(10):
        moments = moments_of_vector(unit)
        I = moments.moment
        inertia = [I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
        columns.append([moments.total, *moments.first, *inertia])
    return np.array(columns).T


def assert_rows_agree(quantity, ours, theirs, floor):
    """Each state's values agree, relative to the largest of that state."""
    if len(ours) == 0:
        return
    ours, theirs = (np.reshape(a, (len(a), -1)) for a in (ours, theirs))
    scale = np.maximum(np.abs(theirs).max(1), floor)
    worst = (np.abs(ours - theirs).max(1) / scale).max()
    assert worst <= BAR, f"{quantity}: {worst:.2e}"


class Peer:
    """Our machine and Pinocchio's model at the same random states."""

    def __init__(self, machine, model, states=STATES):
        self.eom, self.model, self.data = Tree(machine), model, model.createData()
        model.gravity.linear = np.array(machine.gravity)
        model.armature[:] = 0
        names = ["base" if name == "root_joint" else name for name in model.names[1:]]
        rng = np.random.default_rng(3)
        self.order = layout(machine, "pinocchio", names)
        self.states = states
        self.x = np.array([self._unlimited(rng) for _ in range(states)])
        self.v, self.a = rng.normal(size=(2, states, machine.nv))
        # Positions of our velocities in Pinocchio's vector.
        self.place = self.order.v_from(self.x[0], np.arange(float(machine.nv))).astype(int)
        self.q = self.order.x_to(self.x)

    def _unlimited(self, rng):
        joints = self.eom.machine.joints
        return np.concatenate([joint.kind.random(rng) for joint in joints])

    def ours(self, quantity, *arguments):
        function = self.eom.functions[quantity]
        unused = [self.eom.machine.parameters.defaults] * ("parameters" in function.name_in())
        results = function.map(self.states)(*(argument.T for argument in arguments), *unused)
        results = results if isinstance(results, tuple) else (results,)
        sizes = [function.size2_out(k) for k in range(function.n_out())]
        return [
            np.asarray(ca.DM(r).full()).reshape(-1, self.states, n).swapaxes(0, 1)
            for r, n in zip(results, sizes, strict=True)
        ]

    def theirs(self, call):
        """Call Pinocchio on each state with (q, v, a) in its order; results as a list of rows."""
        back = np.argsort(self.place)
        return np.array(
            [call(q, v[back], a[back]) for q, v, a in zip(self.q, self.v, self.a, strict=True)]
        )

    def vectors(self, call):
        return self.theirs(call)[:, self.place]

    def matrices(self, call):
        return self.theirs(call)[:, self.place][:, :, self.place]

    def compared(self):
        m, d, x, v, a = self.model, self.data, self.x, self.v, self.a
        found = {
            "mass": (
                self.ours("mass", x)[0],
                self.matrices(lambda q, v, a: _full(pin.crba(m, d, q))),
            ),
            "bias": (
                self.ours("bias", x, v)[0],
                self.vectors(lambda q, v, a: pin.nonLinearEffects(m, d, q, v)),
            ),
            "gravity": (
                self.ours("gravity", x)[0],
                self.vectors(lambda q, v, a: pin.computeGeneralizedGravity(m, d, q)),
            ),
            "inverse": (
                self.ours("inverse", x, v, a)[0],
                self.vectors(lambda q, v, a: pin.rnea(m, d, q, v, a)),
            ),
            "coriolis": (
                self.ours("coriolis", x, v)[0] @ v[:, :, None],
                self.vectors(lambda q, v, a: pin.computeCoriolisMatrix(m, d, q, v) @ v),
            ),
        }
        found.update(self._energies())
        found.update(self._frames())
        good = np.linalg.cond(found["mass"][1]) < 1e8
        theirs = self.vectors(lambda q, v, a: pin.aba(m, d, q, v, a))
        found["forward"] = (self.ours("forward", x, v, a)[0][good], theirs[good])
        return found

    def _energies(self):
        m, d, x, v = self.model, self.data, self.x, self.v
        kinetic, potential = self.ours("energy", x, v)
        linear, _, centroidal = self.ours("momentum", x, v)
        momenta = self.theirs(lambda q, v, a: pin.computeCentroidalMomentum(m, d, q, v).vector)
        return {
            "kinetic": (kinetic, self.theirs(lambda q, v, a: pin.computeKineticEnergy(m, d, q, v))),
            "potential": (
                potential,
                self.theirs(lambda q, v, a: pin.computePotentialEnergy(m, d, q)),
            ),
            "momentum": (np.hstack([linear, centroidal]), momenta),
        }

    def _index(self, joint):
        return self.model.getJointId("root_joint" if joint.name == "base" else joint.name)

    def _frames(self):
        """Jacobian of the last body and its rate, and the accelerations of all bodies."""
        m, d, x, v, a = self.model, self.data, self.x, self.v, self.a
        machine = self.eom.machine
        body, index = machine.bodies[-1].name, self._index(machine.joints[-1])

        def jacobian(q, v, a):
            return pin.computeJointJacobian(m, d, q, index)

        def rate(q, v, a):
            pin.computeJointJacobiansTimeVariation(m, d, q, v)
            return pin.getJointJacobianTimeVariation(m, d, index, pin.LOCAL)

        def accelerations(q, v, a):
            pin.forwardKinematics(m, d, q, v, a)
            ids = [
                m.getJointId("root_joint" if j.name == "base" else j.name) for j in machine.joints
            ]
            return np.concatenate([d.a[i].vector for i in ids])

        return {
            "jacobian": (
                self.ours(f"jacobian:{body}", x)[0],
                self.theirs(jacobian)[:, :, self.place],
            ),
            "jacobian_rate": (
                self.ours(f"jacobian_rate:{body}", x, v)[0],
                self.theirs(rate)[:, :, self.place],
            ),
            "body_acceleration": (
                self.ours("body_acceleration", x, v, a)[0],
                self.theirs(accelerations),
            ),
        }


def _full(upper):
    return np.triu(upper) + np.triu(upper, 1).T
