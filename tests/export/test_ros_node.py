"""The ROS 2 node of the docs compiles: against a stand-in of rclcpp, and itself where it is."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from framefree.control import ComputedTorque
from framefree.control.references import Hold
from framefree.export import export_c
from framefree.gallery import MACHINES
from framefree.simulate import simulate

DOCS = Path(__file__).parents[2] / "docs" / "export.md"
STAND_IN = """
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>
namespace rclcpp {
template <class M> struct Publisher { void publish(const M &) {} };
template <class M> struct Subscription {};
struct TimerBase {};
struct Node {
    explicit Node(const std::string &) {}
    template <class M> std::shared_ptr<Publisher<M>> create_publisher(const std::string &, int)
    { return std::make_shared<Publisher<M>>(); }
    template <class M, class F>
    std::shared_ptr<Subscription<M>> create_subscription(const std::string &, int, F f)
    { std::function<void(const M &)> kept = f; return std::make_shared<Subscription<M>>(); }
    template <class D, class F> std::shared_ptr<TimerBase> create_wall_timer(D, F f)
    { std::function<void()> kept = f; return std::make_shared<TimerBase>(); }
};
inline void init(int, char **) {}
inline void shutdown() {}
inline void spin(std::shared_ptr<Node>) {}
}
namespace sensor_msgs { namespace msg { struct JointState {
    std::vector<double> position, velocity; }; } }
namespace std_msgs { namespace msg { struct Float64MultiArray { std::vector<double> data; }; } }
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_node_of_the_docs_compiles(tmp_path):
    machine = MACHINES["driven-iiwa"]()
    law = ComputedTorque(machine, stiffness=100.0, damping=20.0)
    goal = Hold(machine, np.full(7, 0.3))
    run = simulate(
        machine, law, goal, duration=0.05, dt=1e-3, control_dt=1e-3, progress=False
    )  # fmt: skip
    export_c(run, "law", tmp_path)
    (source,) = re.findall(r"```cpp\n(.*?)```", DOCS.read_text(), flags=re.DOTALL)
    (tmp_path / "node.cpp").write_text(source)
    for name in (
        "rclcpp/rclcpp",
        "sensor_msgs/msg/joint_state",
        "std_msgs/msg/float64_multi_array",
    ):
        header = tmp_path / "stand_in" / f"{name}.hpp"
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(STAND_IN if name.startswith("rclcpp") else '#include "rclcpp/rclcpp.hpp"')
    words = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Istand_in", "-fsyntax-only"]
    subprocess.run([*words, "node.cpp"], cwd=tmp_path, check=True)
    if Path("/opt/ros").is_dir():
        (setup,) = sorted(Path("/opt/ros").glob("*/include"))[:1]
        there = ["-I", str(setup), *(f"-I{one}" for one in setup.iterdir() if one.is_dir())]
        subprocess.run(
            ["g++", "-std=c++17", *there, "-fsyntax-only", "node.cpp"], cwd=tmp_path, check=True
        )
