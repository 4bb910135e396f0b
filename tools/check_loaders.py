"""Gives files that parc wrote to the frameworks' own loaders; fails where one refuses.

    python tools/check_loaders.py FOLDER    folders TARGET/SAMPLE, as PARC_TARGET_SAMPLES makes them, for 16 ranks
"""

import importlib
import json
import os
import pathlib
import sys

RANKS = 16


def torchtitan(folder):
    """`ConfigManager` runs the module's function, `ParallelDims` checks its degrees."""
    from torchtitan.config import ConfigManager
    from torchtitan.distributed import ParallelDims

    sys.path.insert(0, str(folder))
    sys.modules.pop("parc_plan", None)
    importlib.invalidate_caches()
    try:
        config = ConfigManager().parse_args(["--module", "parc_plan", "--config", "run"])
        ParallelDims.from_config(config.parallelism, RANKS)
    finally:
        sys.path.pop(0)


def deepspeed(folder):
    from deepspeed.runtime import config as runtime
    from deepspeed.runtime.config import DeepSpeedConfig

    # Without processes it takes the world for 1; asked for its rank, it asks the mesh below.
    runtime.dist.get_rank = lambda *_: 0

    class Ranks:
        """As a mesh of data and tensor ranks: the batch is over data ranks."""

        def __init__(self, n):
            self.n = n

        def get_data_parallel_world_size(self):
            return self.n

    config = json.loads((folder / "ds_config.json").read_text())
    tensor = config.get("tensor_parallel", {}).get("autotp_size", 1)
    DeepSpeedConfig(config, mpu=Ranks(RANKS // tensor))


def accelerate(folder):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    path = str(folder / "accelerate.yaml")
    load_config_from_file(path)
    args = launch_command_parser().parse_args(["--config_file", path, "train.py"])
    _validate_launch_command(args)


def main():
    failed = 0
    for target in (torchtitan, deepspeed, accelerate):
        for folder in sorted((pathlib.Path(sys.argv[1]) / target.__name__).glob("*")):
            try:
                target(folder)
                print(f"{target.__name__} {folder.name}: accepted", flush=True)
            except Exception as why:  # whatever a loader raises is its verdict
                failed += 1
                print(f"{target.__name__} {folder.name}: {type(why).__name__}: {why}", flush=True)
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
