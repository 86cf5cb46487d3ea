"""Rows of the maximal formulation's constraints: those of joints, loops and couplings."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Frame
from framefree.machine.values import constant_pose
from framefree.motion.elimination import dual_rate
from framefree.motion.maximal.graph import Border
from framefree.motion.maximal.kinematics import TWIST, Kinematics, stack, step_of
from framefree.motion.spatial import Matrix, Step, Twist


class JointRows:
    """Constraint rows at a state: on links for solving, and as matrices on body twists."""

    def __init__(self, kinematics: Kinematics) -> None:
        self.at = kinematics
        self.model, self.machine, self.links = (
            kinematics.model,
            kinematics.machine,
            kinematics.links,
        )

    # ------------------------------------------------------------ loops and couplings, on links

    @cached_property
    def border(self) -> Border:
        """Rows of loops, then of couplings."""
        bodies: dict[int, list[tuple[int, Matrix]]] = {}
        joints, right, row = [], [], 0
        for blocks, gamma in self._loop_rows():
            for i, block in blocks.items():
                bodies.setdefault(i, []).append((row, block))
            joints.append(ca.SX(gamma.shape[0], self.machine.nv))
            right.append(gamma)
            row += gamma.shape[0]
        for coefficients, gamma in self._coupling_rows():
            joints.append(coefficients)
            right.append(gamma)
            row += 1
        return Border(
            {i: _placed(blocks, row) for i, blocks in bodies.items()},
            ca.vertcat(*joints) if joints else ca.SX(0, self.machine.nv),
            ca.densify(ca.vertcat(*right)) if right else ca.SX(0, 1),
        )

    @cached_property
    def loop_blocked(self) -> list[Matrix]:
        """N (6 x rows) of every loop, in the axes of its frame b."""
        return [
            ca.SX(loop.blocked(self.at.bodies.relative(loop)[2])) for loop in self.machine.loops
        ]

    def _loop_rows(self) -> Iterator[tuple[dict[int, Matrix], Matrix]]:
        """For each loop its blocks on links, and gamma: rows ``sum_i block_i a_i = gamma``."""
        for loop, N in zip(self.machine.loops, self.loop_blocked, strict=True):
            a, b, G = self.at.bodies.relative(loop)
            step = step_of(G)
            xi = ca.densify(ca.SX(self.at.bodies.relative_twist(a, b, G)))
            carried = step.twist_into(Twist.of(ca.densify(ca.SX(self.at.bodies.twist(a)))))
            gamma = N.T @ carried.cross(Twist.of(xi)).vector
            if not N.is_constant():
                gamma = gamma - self._blocked_rate(loop, G, xi).T @ xi
            if self.model.stabilisation:
                gamma = gamma - self.at.pull(ca.SX(loop.residual(G)), N.T @ xi)
            blocks: dict[int, Matrix] = {}
            for frame, block in ((b, N.T), (a, -N.T @ _columns(step))):
                index = self.machine.body_index[frame.body]
                if index >= 0:
                    on_link = block @ _columns(self._frame_on_link(index, frame))
                    blocks[index] = blocks[index] + on_link if index in blocks else on_link
            yield blocks, gamma

    def _blocked_rate(self, loop, G: Matrix, xi: Matrix) -> Matrix:
        """Return dN/dt (6 x rows) of a loop whose blocked directions move."""
        pose = ca.SX.sym("G", 4, 4)
        N = ca.densify(ca.SX(loop.blocked(pose)))
        rate = ca.jtimes(ca.vec(N), ca.vec(pose), ca.vec(pose @ se3.wed(xi)))
        return ca.reshape(ca.substitute(rate, ca.vec(pose), ca.vec(ca.densify(G))), *N.shape)

    def _frame_on_link(self, index: int, frame: Frame) -> Step:
        return step_of(se3.compose(self.links[index].to_body, constant_pose(frame.pose)))

    def _coupling_rows(self) -> Iterator[tuple[Matrix, Matrix]]:
        """For each coupling its coefficients (1 x nv) on joint rates, and gamma."""
        x, v = self.at.joint_x, self.at.joint_v
        names = self.machine.x_names
        for coupling in self.machine.couplings:
            rates = [self.machine.v_names.index(name) for name in coupling.coordinates]
            values = [x[names.index(name)] for name in coupling.coordinates]
            q, w = ca.SX.sym("q", len(rates)), ca.SX.sym("w", len(rates))
            gap = q[0] - coupling.value(*ca.vertsplit(q[1:]))
            slope = ca.jacobian(gap, q)
            known = [ca.vertcat(*values), ca.vertcat(*(v[k] for k in rates))]
            gamma, slope, gap = ca.substitute(
                [-ca.jtimes(slope @ w, q, w), slope, ca.SX(gap)], [q, w], known
            )
            row = ca.SX(1, self.machine.nv)
            for k, rate in enumerate(rates):
                row[0, rate] = slope[k]
            if self.model.stabilisation:
                gamma = gamma - self.at.pull(gap, slope @ known[1])
            yield row, gamma

    # ------------------------------------------------------------------ matrices in body axes

    @cached_property
    def rate_rows(self) -> Matrix:
        """G (nv x 6N) with joint rates = G v, in body axes."""
        return self._joint_rows([d.W for d in self.at.directions])

    @cached_property
    def joint_rows(self) -> Matrix:
        """Rows N^T xi_pq of all joints (x 6N), in body axes."""
        return self._joint_rows([d.N for d in self.at.directions])

    def _joint_rows(self, columns: Sequence[Matrix]) -> Matrix:
        blocks = []
        for i, link in enumerate(self.links):
            row = ca.SX(columns[i].shape[1], self.model.nv)
            row[:, _body(i)] = columns[i].T @ _columns(self.model.on_body[i])
            if link.parent >= 0:
                on_parent = _columns(self.at.steps[i]) @ _columns(self.model.on_body[link.parent])
                row[:, _body(link.parent)] = -columns[i].T @ on_parent
            blocks.append(row)
        return ca.vertcat(*blocks) if blocks else ca.SX(0, 0)

    @cached_property
    def rate_rows_rate(self) -> Matrix:
        """dG/dt (nv x 6N) of `rate_rows`, of joints with rotors; zero for the others."""
        blocks = []
        for i, link in enumerate(self.links):
            row = ca.SX(link.kind.nv, self.model.nv)
            if not link.armature.is_zero():
                W = self.at.directions[i].W
                dW = ca.SX(*W.shape)
                if not link.constant_subspace:
                    dW = dual_rate(link, self.at.joint_x, self.at.joint_v)
                row[:, _body(i)] = dW.T @ _columns(self.model.on_body[i])
                if link.parent >= 0:
                    # d/dt Ad_{G^-1} = -ad_xi Ad_{G^-1}
                    turning = W.T @ se3.little_adjoint(self.at.relative[i]) - dW.T
                    on_parent = _columns(self.at.steps[i]) @ _columns(
                        self.model.on_body[link.parent]
                    )
                    row[:, _body(link.parent)] = turning @ on_parent
            blocks.append(row)
        return ca.vertcat(*blocks) if blocks else ca.SX(0, 0)

    @cached_property
    def border_rows(self) -> Matrix:
        """Rows of loops and couplings (x 6N), in body axes."""
        rows = self.border.joints @ self.rate_rows
        for i, block in self.border.bodies.items():
            rows[:, _body(i)] += block @ _columns(self.model.on_body[i])
        return rows

    @cached_property
    def border_right(self) -> Matrix:
        """Right side of `border_rows`: that of couplings holds the joints' own bias too."""
        return self.border.right + self.border.joints @ self.rate_bias

    @cached_property
    def rate_bias(self) -> Matrix:
        """Right side of `rate_rows` (nv): joint accelerations = G dnu - rate_bias."""
        pairs = zip(self.at.directions, self.at.biases, strict=True)
        return stack([d.W.T @ bias for d, bias in pairs])

    @cached_property
    def all_rows(self) -> Matrix:
        """J (rows x 6N): joints, loops, couplings."""
        return ca.vertcat(self.joint_rows, self.border_rows)

    @cached_property
    def all_right(self) -> Matrix:
        """Right side gamma of J dnu = gamma."""
        pairs = zip(self.at.directions, self.at.biases, strict=True)
        return ca.vertcat(stack([d.N.T @ bias for d, bias in pairs]), self.border_right)


def _columns(step: Step) -> Matrix:
    """``Ad_{G^-1}`` (6x6) of a step: takes twists into its frame."""
    return ca.vertcat(*step.twist_into(Twist.of(ca.SX.eye(6))))


def _body(i: int) -> slice:
    return slice(TWIST * i, TWIST * (i + 1))


def _placed(blocks: Sequence[tuple[int, Matrix]], rows: int) -> Matrix:
    """Blocks (k x 6) at their first rows in a matrix of this many rows."""
    placed = ca.SX(rows, 6)
    for row, block in blocks:
        placed[row : row + block.shape[0], :] += block
    return placed
