"""The ROS 2 build of sar_eval: the shared folders, linked beside this file, go to share/sar_eval/."""

import os

from setuptools import find_packages, setup

NODES = ("sim", "csi", "swarm", "referee", "recorder", "manager")
SHARED = ("worlds", "px4_params", "configs", "launch", "sar_msgs", "models")


def shared_files():
    """(target folder, files) pairs, as data_files wants them."""
    pairs = []
    for name in SHARED:
        tree = [(folder, files) for folder, _, files in os.walk(name) if not folder.endswith("__pycache__")]
        if not any(files for _, files in tree):
            raise FileNotFoundError(
                f"{os.path.abspath(name)} holds no files: build from a whole checkout, whose {name}/ it links to"
            )
        pairs += [
            (f"share/sar_eval/{folder}", sorted(os.path.join(folder, f) for f in files)) for folder, files in tree
        ]
    return pairs


setup(
    name="sar_eval",
    version="0.1.0",
    packages=find_packages(include=["sar_eval", "sar_eval.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sar_eval"]),
        ("share/sar_eval", ["package.xml"]),
        ("bin", ["scripts/sar-eval"]),  # what colcon puts on PATH; its console scripts are for ros2 run
        *shared_files(),
    ],
    entry_points={
        "console_scripts": [
            "sar-eval = sar_eval.start:main",
            *(f"{node}_node = sar_eval.start:node" for node in (*NODES, "px4_bridge")),
            "composed_nodes = sar_eval.start:node",
        ]
    },
    # What tells colcon to run test/, which links to tests/launch, by pytest.
    extras_require={"test": ["pytest"]},
    zip_safe=False,
    license="Apache-2.0",
)
