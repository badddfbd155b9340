"""Work done elsewhere: in other processes of this machine, on a Dask cluster, or under MPI."""
