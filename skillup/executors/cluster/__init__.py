"""Trials on many machines, by way of Dask; `distributed` is imported only once they are wanted.

`wanted` and `parcel` send the suites, `looking` and `pool` know the workers, `venue` sends them
trials, `merging` takes in what comes back. `on_worker`, `spawned`, `trial_parcel` and `telling` are
what runs over there.
"""

from skillup.executors.cluster.connection import check_address
from skillup.executors.cluster.parcel import pack
from skillup.executors.cluster.run import Cluster, run_on_cluster
from skillup.executors.cluster.wanted import wanted_by

__all__ = ["Cluster", "check_address", "pack", "run_on_cluster", "wanted_by"]
