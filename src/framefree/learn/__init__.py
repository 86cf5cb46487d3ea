"""From data to the learned side of the port: models of wrenches that the equations do not know."""

from framefree.learn.actuator_fit import ActuatorFit, PortSamples, fit_actuators, measured_ports
from framefree.learn.actuators import ActuatorMap
from framefree.learn.basis_fit import BasisFit, fit_basis
from framefree.learn.contact import LearnedContact
from framefree.learn.contact_fit import ContactFit, fit_contact
from framefree.learn.errors import LearnError
from framefree.learn.joint_friction import JointFriction, fit_friction
from framefree.learn.learned import LearnedModel
from framefree.learn.learning import Learned, learn
from framefree.learn.library import Library, PolynomialLibrary, RodLibrary, TrimmedLibrary
from framefree.learn.measured import estimate_delay, measured_samples
from framefree.learn.model import BodyMotion, Touch, WrenchModel
from framefree.learn.network import SymmetricNetwork
from framefree.learn.rounds import (
    LearningHistory,
    LearningRound,
    learn_in_rounds,
    motion_distances,
)
from framefree.learn.samples import Samples, joined, noisy
from framefree.learn.store import load, save
from framefree.learn.symmetry import C4, O2, O3, C2v, Symmetry, Trivial
from framefree.learn.symmetry_evidence import (
    SymmetryEvidence,
    SymmetryWarning,
    symmetry_evidence,
)
from framefree.learn.task import LearningTask, SimulatedTask
from framefree.learn.training import Trained, Training
from framefree.learn.trust import DataRange, GuardedModel, ball_radius, conformal_bound

__all__ = [
    "C4",
    "O2",
    "O3",
    "ActuatorFit",
    "ActuatorMap",
    "BasisFit",
    "BodyMotion",
    "C2v",
    "ContactFit",
    "DataRange",
    "GuardedModel",
    "JointFriction",
    "LearnError",
    "Learned",
    "LearnedContact",
    "LearnedModel",
    "LearningHistory",
    "LearningRound",
    "LearningTask",
    "Library",
    "PolynomialLibrary",
    "PortSamples",
    "RodLibrary",
    "Samples",
    "SimulatedTask",
    "SymmetricNetwork",
    "Symmetry",
    "SymmetryEvidence",
    "SymmetryWarning",
    "Touch",
    "Trained",
    "Training",
    "TrimmedLibrary",
    "Trivial",
    "WrenchModel",
    "ball_radius",
    "conformal_bound",
    "estimate_delay",
    "fit_actuators",
    "fit_basis",
    "fit_contact",
    "fit_friction",
    "joined",
    "learn",
    "learn_in_rounds",
    "load",
    "measured_ports",
    "measured_samples",
    "motion_distances",
    "noisy",
    "save",
    "symmetry_evidence",
]
