"""The last layer of a network as numbers of the model: the same wrench, and numbers that adapt."""

from dataclasses import replace

import numpy as np
import pytest
from closed_loop import ClosedLoop
from learn_samples import truth

from framefree.control import Adaptive, PassivityControl
from framefree.control.unknown.learned import learned_interactions
from framefree.gallery.machines.chains import chain
from framefree.learn import LearnedModel, LearnError, SymmetricNetwork, load, save
from framefree.learn.symmetry import O2
from framefree.learn.training import initial_layers


@pytest.fixture(scope="module")
def model():
    """A basis with a small network of random weights."""
    bare = SymmetricNetwork(O2((1.0, 0, 0)), ("velocity", "rate"), 0.4, 0.5, 2.0)
    inputs, outputs = bare.shape
    rng = np.random.default_rng(0)
    hidden = initial_layers((inputs, 3, outputs), rng)[:-1]
    last = (rng.normal(size=(outputs, 3)), rng.normal(size=outputs))
    network = replace(bare, layers=(*hidden, last), means=np.zeros(inputs), widths=np.ones(inputs))
    basis = truth()
    numbers = np.insert(basis.coefficients, len(basis.library), 1.0)
    return LearnedModel(basis.library, numbers, network)


def motion(seed):
    rng = np.random.default_rng(seed)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return rng.normal(size=6), R * np.sign(np.linalg.det(R)), R[2]


def test_the_wrench_is_the_same(model, tmp_path):
    wide = model.with_last_layer()
    outputs = model.network.shape[1]
    assert wide.size == model.size + outputs * 3 + outputs
    assert wide.with_last_layer() is wide
    back = load(save(wide, tmp_path / "wide.npz"))
    assert back.names == wide.names
    for seed in range(3):
        for other in (wide, back):
            assert np.allclose(other(*motion(seed)), model(*motion(seed)), rtol=1e-12, atol=1e-12)


def test_its_numbers_are_the_weights(model):
    """Changing "last.1.2" is changing W[1, 2] of the network itself."""
    wide = model.with_last_layer()
    values = np.array(wide.coefficients)
    values[wide.names.index("last.1.2")] += 0.7
    W, b = model.network.layers[-1]
    W = W.copy()
    W[1, 2] += 0.7
    layers = (*model.network.layers[:-1], (W, b))
    other = replace(model, network=replace(model.network, layers=layers))
    changed = wide.with_coefficients(values)
    assert np.allclose(changed(*motion(0)), other(*motion(0)), rtol=1e-12, atol=1e-12)
    assert not np.allclose(changed(*motion(0)), model(*motion(0)), rtol=1e-6)


@pytest.mark.parametrize("prediction", [0.0, 0.5])
def test_V_falls_as_stated(model, prediction):
    machine, wide = chain(2), model.with_last_layer()
    rng = np.random.default_rng(3)
    places = [i for i, name in enumerate(wide.names) if name.startswith("last")]
    values = np.array(wide.coefficients)
    values[places] += rng.normal(size=len(places))
    true = wide.with_coefficients(values)
    law = PassivityControl(machine, 4.0, stiffness=8.0, Lambda=0.2)
    plant = replace(machine, interactions=learned_interactions(true, machine))
    adapting = Adaptive(law, wide, {"last": 0.5}, truth=true, prediction=prediction)
    loop = ClosedLoop(adapting, plant)
    assert loop.worst(lambda _, first: first + 0.1 * rng.normal(size=len(first)), 3) < 1e-9
    blind = Adaptive(law, wide, {"last": 0.5}, truth=wide, prediction=prediction)
    assert ClosedLoop(blind, plant).worst(lambda _, first: first, 3) > 1e-4


def test_a_basis_has_no_last_layer():
    with pytest.raises(LearnError, match="has no last layer"):
        truth().with_last_layer()
    with pytest.raises(LearnError, match="has no last layer"):
        replace(truth(), last_layer=True)
