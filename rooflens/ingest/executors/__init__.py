"""Work that is done elsewhere: in processes of this machine, on a Dask cluster, under MPI."""
