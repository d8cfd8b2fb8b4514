from setuptools import find_packages, setup

setup(
    name="sar_sim",
    version="0.1.0",
    packages=find_packages(include=["sar_sim", "sar_sim.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sar_sim"]),
        ("share/sar_sim", ["package.xml"]),
    ],
    zip_safe=False,
    license="Apache-2.0",
)
