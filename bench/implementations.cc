// How programs are compiled and started with Sterna, MPICH and Open MPI.
#include <fmt/format.h>
#include <unistd.h>

#include "bench/contest.h"

namespace sterna::bench {
namespace {

const char* name_of(Maker maker) {
  switch (maker) {
    case Maker::sterna:
      return "sterna";
    case Maker::mpich:
      return "mpich";
    case Maker::open_mpi:
      return "openmpi";
  }
  return "";
}

/// bin/ of an implementation.
std::string folder_of(const Bench& bench, Maker maker) {
  return maker == Maker::sterna ? bench.bin_folder()
                                : fmt::format("{}/{}/bin", bench.options().peers, name_of(maker));
}

/// Open MPI refuses root unless it is told twice, and more ranks than cores unless told.
std::vector<std::string> base_environment(Maker maker) {
  if (maker != Maker::open_mpi) {
    return {};
  }
  return {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
}

}  // namespace

std::vector<Candidate> shm_peers() {
  return {
      {"MPICH", Maker::mpich, {}, {}},
      {"Open MPI", Maker::open_mpi, {}, {}},
      {"Open MPI, UCX",
       Maker::open_mpi,
       {},
       {"OMPI_MCA_pml=ucx", "OMPI_MCA_pml_ucx_tls=any", "OMPI_MCA_pml_ucx_devices=any"}},
  };
}

std::vector<Candidate> tcp_peers() {
  return {
      {"MPICH, ofi",
       Maker::mpich,
       {},
       {"MPIR_CVAR_NOLOCAL=1", "MPIR_CVAR_CH4_NETMOD=ofi", "FI_PROVIDER=tcp"}},
      {"MPICH, UCX",
       Maker::mpich,
       {},
       {"MPIR_CVAR_NOLOCAL=1", "MPIR_CVAR_CH4_NETMOD=ucx", "UCX_TLS=tcp,self"}},
      {"Open MPI", Maker::open_mpi, {}, {"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,tcp"}},
  };
}

std::vector<Candidate> crowd_peers() {
  return {
      {"MPICH", Maker::mpich, {}, {}},
      {"Open MPI, yielding",
       Maker::open_mpi,
       {"--map-by", ":OVERSUBSCRIBE"},
       {"OMPI_MCA_mpi_yield_when_idle=1"}},
  };
}

Result<std::string> build_program(Bench& bench, Maker maker, const std::string& program) {
  const std::string executable =
      fmt::format("{}/{}-{}", bench.work_folder(), program, name_of(maker));
  if (::access(executable.c_str(), X_OK) == 0) {
    return executable;
  }
  const std::string compiler = folder_of(bench, maker) + "/mpicc";
  if (::access(compiler.c_str(), X_OK) != 0) {
    return Error{Errc::unsupported,
                 fmt::format("{} is not installed in {}: ./dev peers", name_of(maker),
                             maker == Maker::sterna ? bench.bin_folder() : bench.options().peers)};
  }
  const std::string source = fmt::format("{}/{}.c", bench.program_folder(), program);
  Command command{.words = {compiler, "-O2", source, "-o", executable, "-lm"}};
  if (maker == Maker::sterna) {
    command.words.push_back("-lsterna");
  }
  Result<Readings> compiled = run_command(command, bench.work_folder());
  if (!compiled) {
    return compiled.error();
  }
  return executable;
}

Command launch_command(const Bench& bench, const Candidate& candidate, int rank_count,
                       const std::string& executable, const std::vector<std::string>& arguments) {
  const std::string folder = folder_of(bench, candidate.maker);
  Command command;
  if (candidate.maker == Maker::sterna) {
    // What earlier jobs have measured, perhaps while others computed, is no part of the row.
    command.words = {folder + "/sterna", "run", "--set", "net_cost_sampling=start"};
  } else {
    command.words = {folder + "/mpiexec"};
  }
  command.words.insert(command.words.end(), {"-n", std::to_string(rank_count)});
  command.words.insert(command.words.end(), candidate.options.begin(), candidate.options.end());
  command.words.push_back(executable);
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  command.environment = base_environment(candidate.maker);
  command.environment.insert(command.environment.end(), candidate.environment.begin(),
                             candidate.environment.end());
  return command;
}

}  // namespace sterna::bench
