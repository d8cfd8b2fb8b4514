from setuptools import find_packages, setup

setup(
    name="sar_analysis",
    version="0.1.0",
    packages=find_packages(include=["sar_analysis", "sar_analysis.*"]),
    package_data={"sar_analysis": ["assets/*", "schemas/*.json"]},
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sar_analysis"]),
        ("share/sar_analysis", ["package.xml"]),
    ],
    zip_safe=False,
    license="Apache-2.0",
)
