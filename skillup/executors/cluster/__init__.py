"""Trials on the workers of a Dask cluster; `distributed` is imported only once it is needed."""
