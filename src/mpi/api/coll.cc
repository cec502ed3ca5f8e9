// The blocking collectives. What they do is in mpi/coll/.
#include <mpi.h>

#include "mpi/coll/enter.h"

namespace sterna::mpi {
extern "C" {

int PMPI_Barrier(MPI_Comm comm) {
  return enter_barrier({"MPI_Barrier"}, comm);
}

int PMPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return enter_bcast({"MPI_Bcast"}, Data::of(buffer, count, datatype), root, comm);
}

int PMPI_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return enter_bcast({"MPI_Bcast_c"}, Data::of(buffer, count, datatype), root, comm);
}

int PMPI_Gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return enter_gather({"MPI_Gather"}, Data::of(sendbuf, sendcount, sendtype),
                      Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Gather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return enter_gather({"MPI_Gather_c"}, Data::of(sendbuf, sendcount, sendtype),
                      Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
                 MPI_Comm comm) {
  return enter_gatherv({"MPI_Gatherv"}, Data::of(sendbuf, sendcount, sendtype),
                       Parts::of(recvbuf, recvcounts, displs, recvtype), root, comm);
}

int PMPI_Gatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                   const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                   int root, MPI_Comm comm) {
  return enter_gatherv({"MPI_Gatherv_c"}, Data::of(sendbuf, sendcount, sendtype),
                       Parts::of(recvbuf, recvcounts, displs, recvtype), root, comm);
}

int PMPI_Scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return enter_scatter({"MPI_Scatter"}, Data::of(sendbuf, sendcount, sendtype),
                       Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Scatter_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                   MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return enter_scatter({"MPI_Scatter_c"}, Data::of(sendbuf, sendcount, sendtype),
                       Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Scatterv(const void* sendbuf, const int sendcounts[], const int displs[],
                  MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                  int root, MPI_Comm comm) {
  return enter_scatterv({"MPI_Scatterv"}, Parts::of(sendbuf, sendcounts, displs, sendtype),
                        Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Scatterv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                    MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return enter_scatterv({"MPI_Scatterv_c"}, Parts::of(sendbuf, sendcounts, displs, sendtype),
                        Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_allgather({"MPI_Allgather"}, Data::of(sendbuf, sendcount, sendtype),
                         Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_allgather({"MPI_Allgather_c"}, Data::of(sendbuf, sendcount, sendtype),
                         Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                    MPI_Comm comm) {
  return enter_allgather({"MPI_Allgatherv"}, Data::of(sendbuf, sendcount, sendtype),
                         Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                      MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_allgather({"MPI_Allgatherv_c"}, Data::of(sendbuf, sendcount, sendtype),
                         Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                  int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_alltoall({"MPI_Alltoall"}, Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                        Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_alltoall({"MPI_Alltoall_c"}, Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                        Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                   MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                   const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_alltoall({"MPI_Alltoallv"}, Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Alltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                     MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                     const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_alltoall({"MPI_Alltoallv_c"}, Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Alltoallw(const void* sendbuf, const int sendcounts[], const int sdispls[],
                   const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                   const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
  return enter_alltoall({"MPI_Alltoallw"}, Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Alltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                     const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                     const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
  return enter_alltoall({"MPI_Alltoallw_c"}, Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                int root, MPI_Comm comm) {
  return enter_reduce({"MPI_Reduce"}, {sendbuf, recvbuf, count, datatype, op}, root, comm);
}

int PMPI_Reduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Op op, int root, MPI_Comm comm) {
  return enter_reduce({"MPI_Reduce_c"}, {sendbuf, recvbuf, count, datatype, op}, root, comm);
}

int PMPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm) {
  return enter_allreduce({"MPI_Allreduce"}, {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Allreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                     MPI_Op op, MPI_Comm comm) {
  return enter_allreduce({"MPI_Allreduce_c"}, {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Reduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[],
                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return enter_reduce_scatter({"MPI_Reduce_scatter"}, {sendbuf, recvbuf, 0, datatype, op},
                              Counts::of(recvcounts), comm);
}

int PMPI_Reduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return enter_reduce_scatter({"MPI_Reduce_scatter_c"}, {sendbuf, recvbuf, 0, datatype, op},
                              Counts::of(recvcounts), comm);
}

int PMPI_Reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return enter_reduce_scatter_block({"MPI_Reduce_scatter_block"},
                                    {sendbuf, recvbuf, recvcount, datatype, op}, comm);
}

int PMPI_Reduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return enter_reduce_scatter_block({"MPI_Reduce_scatter_block_c"},
                                    {sendbuf, recvbuf, recvcount, datatype, op}, comm);
}

int PMPI_Scan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
              MPI_Comm comm) {
  return enter_scan({"MPI_Scan"}, {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Scan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                MPI_Op op, MPI_Comm comm) {
  return enter_scan({"MPI_Scan_c"}, {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Exscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                MPI_Comm comm) {
  return enter_exscan({"MPI_Exscan"}, {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Exscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Op op, MPI_Comm comm) {
  return enter_exscan({"MPI_Exscan_c"}, {sendbuf, recvbuf, count, datatype, op}, comm);
}

}  // extern "C"
}  // namespace sterna::mpi
