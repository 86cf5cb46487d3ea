"""What metrics mean that several scenarios have: said once, in a base that they share.

The section Metrics of a scenario's docstring is read with those of its bases
(`framefree.look.report.prose`): what the scenario says itself comes first.
"""

from dataclasses import dataclass

from framefree.gallery.shared.scenario import Scenario


@dataclass(frozen=True)
class VehicleArmScenario(Scenario):
    """A vehicle with an arm, whose Coriolis matrices are compared and whose arm has a task.

    Metrics
    -------
    skew_residual
        How far dM/dt - 2C is from skew-symmetric for the two forms that are, at worst.
    bias_residual
        How far C v is from the bias for those forms.
    adjoint_skew_residual
        How far the plain adjoint form is from skew-symmetric.
    adjoint_bias_residual
        How far its C v is from the bias.
    printed_skew_residual
        How far the form as printed is from skew-symmetric.
    printed_bias_residual
        How far its C v is from the bias.
    task_pivot_min
        Least pivot of the task's equations: 0 would be a singular position.
    end_position_rms_m
        Distance of the gripper from its path, root of the mean square.
    end_position_m
        Distance of the gripper from its place in the end.
    end_angle_rad
        Angle of the gripper from its attitude in the end.
    torque_max_nm
        Largest torque of a joint.
    """


@dataclass(frozen=True)
class RobustScenario(Scenario):
    """A machine that a robust law moves against what its model leaves out.

    Metrics
    -------
    ultimate_bound
        Size of the error (rad and m together) below which the proof promises it to end.
    lyapunov_over_level
        Largest V, by the level that the proof gives, after it was first below it.
    uncertainty_over_kappa
        Largest uncertainty that was met, by kappa.
    error_over_envelope
        Largest error, by what the proof allows at that time.
    tip_rmse_m
        Distance of the tip from its path, root of the mean square.
    """


@dataclass(frozen=True)
class CraneScenario(RobustScenario):
    """The crane with a cylinder in a closed chain under the robust law.

    Metrics
    -------
    *rmse_*
        Error of a coordinate (the turntable's angle phi, the boom's theta, the cylinder's
        stroke delta), root of the mean square.
    dbar_*
        Largest force that the model does not know and that was met, at each coordinate.
    *dbar_*
        Largest force that the model does not know and that was met, in the run beside.
    stated_*
        The same as it was stated before the run.
    kappa_*
        Force that the law sets against what it does not know.
    ultimate_bound_*
        The bound of each coordinate.
    steady_error_max
        Largest size of the error in the second half (rad and m together).
    steady_error_*
        Largest error of each coordinate in the second half.
    *_ultimate_bound
        The bound of the run beside.
    *_steady_error_max
        Largest size of the error in the late part of the run beside.
    *kappa_exceeded
        Coordinates at which the uncertainty is above kappa, in the run beside.
    bound_entered_s
        When the error first is within its bound.
    lyapunov_rate_error
        By how much V misses the integral of its rate in the proof, by V.
    uncertainty_over_stated
        Largest uncertainty that was met, by the one stated.
    stated_over_kappa
        Largest uncertainty that was stated, by kappa.
    plant_difference
        Largest difference of a coordinate between MuJoCo and our plant, rad or m.
    """


@dataclass(frozen=True)
class ChainScenario(Scenario):
    """A chain of rods under a law through its virtual port.

    Metrics
    -------
    lyapunov_rate_error
        By how much the rate of V misses the one that the law states, before the push,
        relative.
    js_max
        Largest |J s|: how far velocity errors s violate the joints, m/s.
    ignoring_joints_*
        The same, or the error named, under the law as printed, which ignores the joints.
    """


@dataclass(frozen=True)
class ConservativeScenario(Scenario):
    """A machine that nothing drives or brakes.

    Metrics
    -------
    energy_drift_j
        Largest change of the energy, which nothing should change.
    """


@dataclass(frozen=True)
class PoledScenario(Scenario):
    """A machine whose small errors have poles.

    Metrics
    -------
    slowest_pole
        Real part of the slowest pole, 1/s: negative means that errors decay.
    """


@dataclass(frozen=True)
class OscillatorScenario(Scenario):
    """Arms whose errors of position are to move like an oscillator.

    Metrics
    -------
    closed_form_error_m
        Largest difference of the error of position to the closed form of an oscillator.
    """
