"""Wheels carry the shared folders as data of sar_eval; everything else is declared in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHARED = {
    "worlds": ROOT / "worlds",
    "px4_params": ROOT / "px4_params",
    "configs": ROOT / "configs",
    "launch": ROOT / "launch",
    "sar_msgs": ROOT / "ros2_ws" / "src" / "sar_msgs",
    "models": ROOT / "ros2_ws" / "src" / "sar_gazebo" / "models",
}


class BuildWithSharedFolders(build_py):
    """Copies the committed folders into the built package; an editable install reads them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for source, target in self._shared_files():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        shared = [] if self.editable_mode else [str(target) for _, target in self._shared_files()]
        return [*super().get_outputs(include_bytecode), *shared]

    def _shared_files(self) -> list[tuple[Path, Path]]:
        share = Path(self.build_lib) / "sar_eval" / "share"
        pairs = []
        for name, folder in SHARED.items():
            files = [f for f in sorted(folder.rglob("*")) if f.is_file() and "__pycache__" not in f.parts]
            if not files:
                raise FileNotFoundError(f"{folder} holds no files: the package cannot be built without {name}/")
            pairs += [(f, share / name / f.relative_to(folder)) for f in files]
        return pairs


setup(cmdclass={"build_py": BuildWithSharedFolders})
