// The non-blocking collectives. What they do is in mpi/coll/.
#include <mpi.h>

#include "mpi/coll/enter.h"

namespace sterna::mpi {
extern "C" {

int PMPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return enter_barrier({"MPI_Ibarrier", Form::nonblocking, request}, comm);
}

int PMPI_Ibcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
                MPI_Request* request) {
  return enter_bcast({"MPI_Ibcast", Form::nonblocking, request}, Data::of(buffer, count, datatype),
                     root, comm);
}

int PMPI_Ibcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                  MPI_Request* request) {
  return enter_bcast({"MPI_Ibcast_c", Form::nonblocking, request},
                     Data::of(buffer, count, datatype), root, comm);
}

int PMPI_Igather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                 MPI_Request* request) {
  return enter_gather({"MPI_Igather", Form::nonblocking, request},
                      Data::of(sendbuf, sendcount, sendtype),
                      Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Igather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                   MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                   MPI_Request* request) {
  return enter_gather({"MPI_Igather_c", Form::nonblocking, request},
                      Data::of(sendbuf, sendcount, sendtype),
                      Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Igatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                  const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
                  MPI_Comm comm, MPI_Request* request) {
  return enter_gatherv({"MPI_Igatherv", Form::nonblocking, request},
                       Data::of(sendbuf, sendcount, sendtype),
                       Parts::of(recvbuf, recvcounts, displs, recvtype), root, comm);
}

int PMPI_Igatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                    int root, MPI_Comm comm, MPI_Request* request) {
  return enter_gatherv({"MPI_Igatherv_c", Form::nonblocking, request},
                       Data::of(sendbuf, sendcount, sendtype),
                       Parts::of(recvbuf, recvcounts, displs, recvtype), root, comm);
}

int PMPI_Iscatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                  int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                  MPI_Request* request) {
  return enter_scatter({"MPI_Iscatter", Form::nonblocking, request},
                       Data::of(sendbuf, sendcount, sendtype),
                       Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Iscatter_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                    MPI_Request* request) {
  return enter_scatter({"MPI_Iscatter_c", Form::nonblocking, request},
                       Data::of(sendbuf, sendcount, sendtype),
                       Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Iscatterv(const void* sendbuf, const int sendcounts[], const int displs[],
                   MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                   int root, MPI_Comm comm, MPI_Request* request) {
  return enter_scatterv({"MPI_Iscatterv", Form::nonblocking, request},
                        Parts::of(sendbuf, sendcounts, displs, sendtype),
                        Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Iscatterv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                     MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                     MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return enter_scatterv({"MPI_Iscatterv_c", Form::nonblocking, request},
                        Parts::of(sendbuf, sendcounts, displs, sendtype),
                        Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Iallgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return enter_allgather({"MPI_Iallgather", Form::nonblocking, request},
                         Data::of(sendbuf, sendcount, sendtype),
                         Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Iallgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                      MPI_Request* request) {
  return enter_allgather({"MPI_Iallgather_c", Form::nonblocking, request},
                         Data::of(sendbuf, sendcount, sendtype),
                         Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Iallgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                     const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                     MPI_Comm comm, MPI_Request* request) {
  return enter_allgather({"MPI_Iallgatherv", Form::nonblocking, request},
                         Data::of(sendbuf, sendcount, sendtype),
                         Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Iallgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                       void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                       MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return enter_allgather({"MPI_Iallgatherv_c", Form::nonblocking, request},
                         Data::of(sendbuf, sendcount, sendtype),
                         Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Ialltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return enter_alltoall({"MPI_Ialltoall", Form::nonblocking, request},
                        Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                        Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Ialltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                     MPI_Request* request) {
  return enter_alltoall({"MPI_Ialltoall_c", Form::nonblocking, request},
                        Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                        Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Ialltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                    MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                    const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                    MPI_Request* request) {
  return enter_alltoall({"MPI_Ialltoallv", Form::nonblocking, request},
                        Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Ialltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                      MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                      const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                      MPI_Request* request) {
  return enter_alltoall({"MPI_Ialltoallv_c", Form::nonblocking, request},
                        Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Ialltoallw(const void* sendbuf, const int sendcounts[], const int sdispls[],
                    const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                    const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                    MPI_Request* request) {
  return enter_alltoall({"MPI_Ialltoallw", Form::nonblocking, request},
                        Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Ialltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                      const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                      const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                      MPI_Request* request) {
  return enter_alltoall({"MPI_Ialltoallw_c", Form::nonblocking, request},
                        Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Ireduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 int root, MPI_Comm comm, MPI_Request* request) {
  return enter_reduce({"MPI_Ireduce", Form::nonblocking, request},
                      {sendbuf, recvbuf, count, datatype, op}, root, comm);
}

int PMPI_Ireduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                   MPI_Op op, int root, MPI_Comm comm, MPI_Request* request) {
  return enter_reduce({"MPI_Ireduce_c", Form::nonblocking, request},
                      {sendbuf, recvbuf, count, datatype, op}, root, comm);
}

int PMPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm, MPI_Request* request) {
  return enter_allreduce({"MPI_Iallreduce", Form::nonblocking, request},
                         {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Iallreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return enter_allreduce({"MPI_Iallreduce_c", Form::nonblocking, request},
                         {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Ireduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[],
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return enter_reduce_scatter({"MPI_Ireduce_scatter", Form::nonblocking, request},
                              {sendbuf, recvbuf, 0, datatype, op}, Counts::of(recvcounts), comm);
}

int PMPI_Ireduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                           MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return enter_reduce_scatter({"MPI_Ireduce_scatter_c", Form::nonblocking, request},
                              {sendbuf, recvbuf, 0, datatype, op}, Counts::of(recvcounts), comm);
}

int PMPI_Ireduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                               MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                               MPI_Request* request) {
  return enter_reduce_scatter_block({"MPI_Ireduce_scatter_block", Form::nonblocking, request},
                                    {sendbuf, recvbuf, recvcount, datatype, op}, comm);
}

int PMPI_Ireduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                 MPI_Request* request) {
  return enter_reduce_scatter_block({"MPI_Ireduce_scatter_block_c", Form::nonblocking, request},
                                    {sendbuf, recvbuf, recvcount, datatype, op}, comm);
}

int PMPI_Iscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
               MPI_Comm comm, MPI_Request* request) {
  return enter_scan({"MPI_Iscan", Form::nonblocking, request},
                    {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Iscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return enter_scan({"MPI_Iscan_c", Form::nonblocking, request},
                    {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Iexscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm, MPI_Request* request) {
  return enter_exscan({"MPI_Iexscan", Form::nonblocking, request},
                      {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Iexscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                   MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return enter_exscan({"MPI_Iexscan_c", Form::nonblocking, request},
                      {sendbuf, recvbuf, count, datatype, op}, comm);
}

}  // extern "C"
}  // namespace sterna::mpi
