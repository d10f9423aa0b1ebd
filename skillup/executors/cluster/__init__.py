"""Trials on the workers of a Dask cluster; `distributed` is imported only once it is needed.

`bundle` packs what travels, `client` submits the trials and takes in what comes back, `worker` is
what runs over there.
"""

from skillup.executors.cluster.bundle import pack
from skillup.executors.cluster.client import Cluster, run_on_cluster

__all__ = ["Cluster", "pack", "run_on_cluster"]
