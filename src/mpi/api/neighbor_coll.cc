// The neighbourhood collectives, in all forms. What they do is in mpi/coll/.
#include <mpi.h>

#include "mpi/coll/enter.h"

namespace sterna::mpi {
extern "C" {

int PMPI_Neighbor_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                            void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_neighbor_allgather({"MPI_Neighbor_allgather"},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Neighbor_allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                              void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                              MPI_Comm comm) {
  return enter_neighbor_allgather({"MPI_Neighbor_allgather_c"},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Neighbor_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                             void* recvbuf, const int recvcounts[], const int displs[],
                             MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_neighbor_allgather({"MPI_Neighbor_allgatherv"},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Neighbor_allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                               void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                               MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_neighbor_allgather({"MPI_Neighbor_allgatherv_c"},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Neighbor_alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoall"},
                                 Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                                 Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Neighbor_alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                             void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                             MPI_Comm comm) {
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoall_c"},
                                 Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                                 Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Neighbor_alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                            MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                            const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoallv"},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Neighbor_alltoallv_c(const void* sendbuf, const MPI_Count sendcounts[],
                              const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
                              const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                              MPI_Datatype recvtype, MPI_Comm comm) {
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoallv_c"},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Neighbor_alltoallw(const void* sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                            const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                            const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                            MPI_Comm comm) {
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoallw"},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Neighbor_alltoallw_c(const void* sendbuf, const MPI_Count sendcounts[],
                              const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                              void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                              const MPI_Datatype recvtypes[], MPI_Comm comm) {
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoallw_c"},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Ineighbor_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                             void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                             MPI_Request* request) {
  return enter_neighbor_allgather({"MPI_Ineighbor_allgather", Form::nonblocking, request},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Ineighbor_allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                               void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                               MPI_Comm comm, MPI_Request* request) {
  return enter_neighbor_allgather({"MPI_Ineighbor_allgather_c", Form::nonblocking, request},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Ineighbor_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                              void* recvbuf, const int recvcounts[], const int displs[],
                              MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return enter_neighbor_allgather({"MPI_Ineighbor_allgatherv", Form::nonblocking, request},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Ineighbor_allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                void* recvbuf, const MPI_Count recvcounts[],
                                const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                MPI_Request* request) {
  return enter_neighbor_allgather({"MPI_Ineighbor_allgatherv_c", Form::nonblocking, request},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Ineighbor_alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                            void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                            MPI_Request* request) {
  return enter_neighbor_alltoall({"MPI_Ineighbor_alltoall", Form::nonblocking, request},
                                 Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                                 Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Ineighbor_alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                              void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                              MPI_Comm comm, MPI_Request* request) {
  return enter_neighbor_alltoall({"MPI_Ineighbor_alltoall_c", Form::nonblocking, request},
                                 Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                                 Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Ineighbor_alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                             MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                             const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                             MPI_Request* request) {
  return enter_neighbor_alltoall({"MPI_Ineighbor_alltoallv", Form::nonblocking, request},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Ineighbor_alltoallv_c(const void* sendbuf, const MPI_Count sendcounts[],
                               const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
                               const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                               MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return enter_neighbor_alltoall({"MPI_Ineighbor_alltoallv_c", Form::nonblocking, request},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Ineighbor_alltoallw(const void* sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                             const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                             const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                             MPI_Comm comm, MPI_Request* request) {
  return enter_neighbor_alltoall({"MPI_Ineighbor_alltoallw", Form::nonblocking, request},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Ineighbor_alltoallw_c(const void* sendbuf, const MPI_Count sendcounts[],
                               const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                               void* recvbuf, const MPI_Count recvcounts[],
                               const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                               MPI_Comm comm, MPI_Request* request) {
  return enter_neighbor_alltoall({"MPI_Ineighbor_alltoallw_c", Form::nonblocking, request},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Neighbor_allgather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                                 void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                 MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_allgather({"MPI_Neighbor_allgather_init", Form::persistent, request},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Neighbor_allgather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                   void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_allgather({"MPI_Neighbor_allgather_init_c", Form::persistent, request},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Neighbor_allgatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                                  void* recvbuf, const int recvcounts[], const int displs[],
                                  MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_allgather({"MPI_Neighbor_allgatherv_init", Form::persistent, request},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Neighbor_allgatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                    void* recvbuf, const MPI_Count recvcounts[],
                                    const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                    MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_allgather({"MPI_Neighbor_allgatherv_init_c", Form::persistent, request},
                                  Data::of(sendbuf, sendcount, sendtype),
                                  Parts::of(recvbuf, recvcounts, displs, recvtype), comm);
}

int PMPI_Neighbor_alltoall_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                                void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoall_init", Form::persistent, request},
                                 Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                                 Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Neighbor_alltoall_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                  void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                                  MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoall_init_c", Form::persistent, request},
                                 Parts::equal(Data::of(sendbuf, sendcount, sendtype)),
                                 Parts::equal(Data::of(recvbuf, recvcount, recvtype)), comm);
}

int PMPI_Neighbor_alltoallv_init(const void* sendbuf, const int sendcounts[], const int sdispls[],
                                 MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                                 const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                                 MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoallv_init", Form::persistent, request},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Neighbor_alltoallv_init_c(const void* sendbuf, const MPI_Count sendcounts[],
                                   const MPI_Aint sdispls[], MPI_Datatype sendtype, void* recvbuf,
                                   const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                                   MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                   MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoallv_init_c", Form::persistent, request},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtype),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtype), comm);
}

int PMPI_Neighbor_alltoallw_init(const void* sendbuf, const int sendcounts[],
                                 const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                 void* recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
                                 const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                                 MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoallw_init", Form::persistent, request},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

int PMPI_Neighbor_alltoallw_init_c(const void* sendbuf, const MPI_Count sendcounts[],
                                   const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                   void* recvbuf, const MPI_Count recvcounts[],
                                   const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  (void)info;  // No hint changes what they do.
  return enter_neighbor_alltoall({"MPI_Neighbor_alltoallw_init_c", Form::persistent, request},
                                 Parts::of(sendbuf, sendcounts, sdispls, sendtypes),
                                 Parts::of(recvbuf, recvcounts, rdispls, recvtypes), comm);
}

}  // extern "C"
}  // namespace sterna::mpi
