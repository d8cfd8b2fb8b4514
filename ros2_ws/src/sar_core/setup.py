from setuptools import find_packages, setup

setup(
    name="sar_core",
    version="0.1.0",
    packages=find_packages(include=["sar_core", "sar_core.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sar_core"]),
        ("share/sar_core", ["package.xml"]),
    ],
    zip_safe=False,
    license="Apache-2.0",
)
