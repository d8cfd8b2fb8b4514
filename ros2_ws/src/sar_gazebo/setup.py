"""The ROS 2 build of sar_gazebo: models and server configuration go to share/sar_gazebo/."""

from setuptools import find_packages, setup

setup(
    name="sar_gazebo",
    version="0.1.0",
    packages=find_packages(include=["sar_gazebo", "sar_gazebo.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sar_gazebo"]),
        ("share/sar_gazebo", ["package.xml", "server.config"]),
        ("share/sar_gazebo/models/sar_x500", ["models/sar_x500/model.config", "models/sar_x500/model.sdf"]),
    ],
    entry_points={
        "console_scripts": [
            "stage = sar_gazebo.main:stage",
            "bridge = sar_gazebo.main:bridge",
        ],
        "sar_eval.tiers": ["gazebo = sar_gazebo.tier:GAZEBO"],
    },
    zip_safe=False,
    license="Apache-2.0",
)
