from setuptools import find_packages, setup

setup(
    name="sar_swarm",
    version="0.1.0",
    packages=find_packages(include=["sar_swarm", "sar_swarm.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sar_swarm"]),
        ("share/sar_swarm", ["package.xml"]),
    ],
    zip_safe=False,
    license="Apache-2.0",
)
