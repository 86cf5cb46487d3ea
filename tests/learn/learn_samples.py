"""Chains with known unknown forces, for tests of learning."""

from dataclasses import replace

import numpy as np

from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.learned.fluid_chain import CURRENT, LENGTH, TERMS
from framefree.learn import LearnedModel, RodLibrary, Samples


def truth(current=CURRENT, **changed):
    """Return a fluid that the library spans."""
    library = RodLibrary(LENGTH)
    terms = TERMS | {name.replace("_", "."): value for name, value in changed.items()}
    return LearnedModel(library, [*(terms[name] for name in library.names), *current])


def states(machine, n, seed=0, speed=0.4, motions=10):
    """Return samples at random states, without labels."""
    rng = np.random.default_rng(seed)
    x = machine.integrate(np.tile(machine.neutral(), (n, 1)), rng.normal(size=(n, machine.nv)))
    v = speed * rng.normal(size=(n, machine.nv))
    which = np.arange(n) * motions // n
    return Samples.of_states(machine, x, v, np.zeros((n, machine.nv)), motion=which)


def labelled(samples, model):
    """Return samples with the forces of a model as labels."""
    return replace(samples, labels=samples.predicted(model))


def fluid_samples(n, bodies=3, seed=0, model=None, **options):
    """Return samples of a chain in a fluid."""
    own = states(chain(bodies), n, seed, **options)
    return labelled(own, model or truth())
