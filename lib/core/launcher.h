#pragma once
// What srun, torchrun and mpirun tell each process that they start: which of how many it is, and
// where they meet. Only who is asked to join looks; nothing is guessed from a batch script's
// environment.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace core {

/// The value of an environment variable; nullptr where it is not set.
using Environment = std::function<const char*(const char* name)>;
/// That of this process.
const char* own_environment(const char* name);

/// One of the processes that were started together.
struct Launch {
  std::string launcher;  ///< "torchrun" (or by hand), "mpirun" or "srun"
  std::int64_t rank = 0, size = 1;
  std::int64_t local = 0;  ///< rank among those of this machine
  /// Where they meet: a host and a port, or, where `host` is empty, a file that all see.
  std::string host;
  std::uint16_t port = 0;
  bool served = false;  ///< a store listens there already: torchrun's
  std::string name;     ///< of this start: what they leave where they meet, another does not find
  /// All ranks run on this machine: they need no port to meet, though host and port name the place.
  bool one_machine = false;
  std::string key;  ///< what all ranks know and nobody else does; may be empty
};

/// The first that fits:
///   RANK, WORLD_SIZE (LOCAL_RANK)                     torchrun, or by hand
///   OMPI_COMM_WORLD_RANK, _SIZE (_LOCAL_RANK)         mpirun of Open MPI
///   SLURM_STEP_ID: SLURM_PROCID, SLURM_STEP_NUM_TASKS (SLURM_LOCALID)         srun
///   PMI_RANK, PMI_SIZE (MPI_LOCALRANKID)              mpirun of MPICH
/// mpirun stands before srun, which starts its daemons in a Slurm job: their step is not the
/// ranks'. They meet at MASTER_ADDR:MASTER_PORT where both are set (torchrun sets them); else
/// srun's at the step's first host, with a port from the job's and the step's number, and Open
/// MPI's by a file. All ranks run on one machine where MASTER_ADDR is_this_machine(), or where the
/// launcher says so by LOCAL_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_SIZE, SLURM_STEP_NUM_NODES or
/// MPI_LOCALNRANKS; TESSERA_RANKS_MEET=tcp has them meet at the port all the same.
/// TESSERA_RANKS_KEY is the key. Throws Error{usage} where none fits, or naming the variable that
/// is missing or no number.
Launch launch(const Environment& environment = own_environment);

/// True if `host` can mean this machine only: localhost, an address of the loopback, 0.0.0.0 or ::.
bool is_this_machine(const std::string& host);

/// The first host of a Slurm list: "n[0-1,7],m" -> "n0", "rack[02-03]n[1,5]" -> "rack02n1".
std::string first_host(std::string_view list);

/// One of `count` parts of a program's work, from 0.
struct Part {
  std::int64_t index = 0, count = 1;
  bool whole() const { return count == 1; }
  /// Which of `n` things that stand in a row are its: [begin, end). Parts follow each other and
  /// differ by one at most.
  std::int64_t begin(std::int64_t n) const;
  std::int64_t end(std::int64_t n) const;
};

/// What --part says where it is not given.
inline constexpr const char* kWholePart = "all";
inline bool is_part(const std::string& text) { return text != kWholePart; }

/// "3/8" is the third of eight; "launcher" the one that the task of a Slurm array
/// (SLURM_ARRAY_TASK_ID, _MIN, _STEP, _COUNT), else launch(), says; kWholePart is the whole.
/// Throws Error{usage} with the flag's name, --part.
Part part(const std::string& text, const Environment& environment = own_environment);

}  // namespace core
