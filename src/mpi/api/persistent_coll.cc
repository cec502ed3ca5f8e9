// The persistent collectives. What they do is in mpi/coll/.
#include <mpi.h>

#include "mpi/coll/enter.h"

namespace sterna::mpi {
extern "C" {

int PMPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_barrier({"MPI_Barrier_init", Form::persistent, request}, comm);
}

int PMPI_Bcast_init(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
                    MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_bcast({"MPI_Bcast_init", Form::persistent, request},
                     Data::of(buffer, count, datatype), root, comm);
}

int PMPI_Bcast_init_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                      MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_bcast({"MPI_Bcast_init_c", Form::persistent, request},
                     Data::of(buffer, count, datatype), root, comm);
}

int PMPI_Gather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                     int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                     MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_gather({"MPI_Gather_init", Form::persistent, request},
                      Data::of(sendbuf, sendcount, sendtype),
                      Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Gather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                       void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                       MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_gather({"MPI_Gather_init_c", Form::persistent, request},
                      Data::of(sendbuf, sendcount, sendtype),
                      Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Gatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                      const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
                      MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_gatherv({"MPI_Gatherv_init", Form::persistent, request},
                       Data::of(sendbuf, sendcount, sendtype),
                       Parts::of(recvbuf, recvcounts, displs, recvtype), root, comm);
}

int PMPI_Gatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                        void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                        MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                        MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_gatherv({"MPI_Gatherv_init_c", Form::persistent, request},
                       Data::of(sendbuf, sendcount, sendtype),
                       Parts::of(recvbuf, recvcounts, displs, recvtype), root, comm);
}

int PMPI_Scatter_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                      int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_scatter({"MPI_Scatter_init", Form::persistent, request},
                       Data::of(sendbuf, sendcount, sendtype),
                       Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Scatter_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                        void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                        MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_scatter({"MPI_Scatter_init_c", Form::persistent, request},
                       Data::of(sendbuf, sendcount, sendtype),
                       Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Scatterv_init(const void* sendbuf, const int sendcounts[], const int displs[],
                       MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                       int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_scatterv({"MPI_Scatterv_init", Form::persistent, request},
                        Parts::of(sendbuf, sendcounts, displs, sendtype),
                        Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Scatterv_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                         MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                         MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                         MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_scatterv({"MPI_Scatterv_init_c", Form::persistent, request},
                        Parts::of(sendbuf, sendcounts, displs, sendtype),
                        Data::of(recvbuf, recvcount, recvtype), root, comm);
}

int PMPI_Allgather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                        int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                        MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_allgather({"MPI_Allgather_init", Form::persistent, request},
                         Data::of(sendbuf, sendcount, sendtype),
                         Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Allgather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                          void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                          MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_allgather({"MPI_Allgather_init_c", Form::persistent, request},
                         Data::of(sendbuf, sendcount, sendtype),
                         Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Allgatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                         const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                         MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_allgather({"MPI_Allgatherv_init", Form::persistent, request},
                         Data::of(sendbuf, sendcount, sendtype),
                         Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Allgatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                           void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                           MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                           MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_allgather({"MPI_Allgatherv_init_c", Form::persistent, request},
                         Data::of(sendbuf, sendcount, sendtype),
                         Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Alltoall_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                       int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                       MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_alltoall({"MPI_Alltoall_init", Form::persistent, request},
                        Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                        Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Alltoall_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                         void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                         MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_alltoall({"MPI_Alltoall_init_c", Form::persistent, request},
                        Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                        Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Alltoallv_init(const void* sendbuf, const int sendcounts[], const int sdispls[],
                        MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                        const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                        MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_alltoall({"MPI_Alltoallv_init", Form::persistent, request},
                        Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Alltoallv_init_c(const void* sendbuf, const MPI_Count sendcounts[],
                          const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
                          const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                          MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                          MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_alltoall({"MPI_Alltoallv_init_c", Form::persistent, request},
                        Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Alltoallw_init(const void* sendbuf, const int sendcounts[], const int sdispls[],
                        const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                        const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                        MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_alltoall({"MPI_Alltoallw_init", Form::persistent, request},
                        Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Alltoallw_init_c(const void* sendbuf, const MPI_Count sendcounts[],
                          const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
                          const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                          const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                          MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_alltoall({"MPI_Alltoallw_init_c", Form::persistent, request},
                        Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                        Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Reduce_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
                     MPI_Op op, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_reduce({"MPI_Reduce_init", Form::persistent, request},
                      {sendbuf, recvbuf, count, datatype, op}, root, comm);
}

int PMPI_Reduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Op op, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_reduce({"MPI_Reduce_init_c", Form::persistent, request},
                      {sendbuf, recvbuf, count, datatype, op}, root, comm);
}

int PMPI_Allreduce_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
                        MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_allreduce({"MPI_Allreduce_init", Form::persistent, request},
                         {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Allreduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count,
                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                          MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_allreduce({"MPI_Allreduce_init_c", Form::persistent, request},
                         {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Reduce_scatter_init(const void* sendbuf, void* recvbuf, const int recvcounts[],
                             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                             MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_reduce_scatter({"MPI_Reduce_scatter_init", Form::persistent, request},
                              {sendbuf, recvbuf, 0, datatype, op}, Counts::of(recvcounts), comm);
}

int PMPI_Reduce_scatter_init_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                               MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                               MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_reduce_scatter({"MPI_Reduce_scatter_init_c", Form::persistent, request},
                              {sendbuf, recvbuf, 0, datatype, op}, Counts::of(recvcounts), comm);
}

int PMPI_Reduce_scatter_block_init(const void* sendbuf, void* recvbuf, int recvcount,
                                   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                   MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_reduce_scatter_block({"MPI_Reduce_scatter_block_init", Form::persistent, request},
                                    {sendbuf, recvbuf, recvcount, datatype, op}, comm);
}

int PMPI_Reduce_scatter_block_init_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                     MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_reduce_scatter_block({"MPI_Reduce_scatter_block_init_c", Form::persistent, request},
                                    {sendbuf, recvbuf, recvcount, datatype, op}, comm);
}

int PMPI_Scan_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_scan({"MPI_Scan_init", Form::persistent, request},
                    {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Scan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_scan({"MPI_Scan_init_c", Form::persistent, request},
                    {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Exscan_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
                     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_exscan({"MPI_Exscan_init", Form::persistent, request},
                      {sendbuf, recvbuf, count, datatype, op}, comm);
}

int PMPI_Exscan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_exscan({"MPI_Exscan_init_c", Form::persistent, request},
                      {sendbuf, recvbuf, count, datatype, op}, comm);
}

}  // extern "C"
}  // namespace sterna::mpi
