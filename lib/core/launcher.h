#pragma once
// Reads what srun, torchrun and mpirun tell each process that they start: its rank, the number of
// ranks, and where the ranks rendezvous. Only a caller that asks for a launch reads these
// variables; nothing is inferred from a batch script's environment.
// Collects the names of the parts of a divided command, for code that joins the parts.

#include "core/base.h"

namespace core {

/// An Environment returns the value of an environment variable, or nullptr if it is not set.
using Environment = std::function<const char*(const char* name)>;
/// Reads the environment of this process.
const char* own_environment(const char* name);

/// A Launch describes one process of a group that a launcher started together.
struct Launch {
  std::string launcher;  ///< "torchrun" (or by hand), "mpirun" or "srun"
  std::int64_t rank = 0, size = 1;
  std::int64_t local = 0;  ///< rank among the ranks of this machine
  /// The address of the rendezvous: a host and a port, or, if `host` is empty, a file that all
  /// ranks see.
  std::string host;
  std::uint16_t port = 0;
  bool served = false;  ///< a store (torchrun's) already listens at this address
  /// An identifier of this launch. It keeps the rendezvous data of different launches apart.
  std::string name;
  /// All ranks run on this machine, so they need no port to rendezvous; host and port may still be
  /// set.
  bool one_machine = false;
  std::string key;  ///< a secret that all ranks share; may be empty
};

/// Returns the launch that the first matching set of variables describes:
///   RANK, WORLD_SIZE (LOCAL_RANK)                     torchrun, or by hand
///   OMPI_COMM_WORLD_RANK, _SIZE (_LOCAL_RANK)         mpirun of Open MPI
///   SLURM_STEP_ID: SLURM_PROCID, SLURM_STEP_NUM_TASKS (SLURM_LOCALID)         srun
///   PMI_RANK, PMI_SIZE (MPI_LOCALRANKID)              mpirun of MPICH
/// mpirun precedes srun because mpirun starts its daemons in a Slurm job step whose variables do
/// not describe the ranks. The ranks rendezvous at MASTER_ADDR:MASTER_PORT if both are set
/// (torchrun sets them). Otherwise ranks of srun use the first host of the step and a port derived
/// from the numbers of the job and the step, and ranks of Open MPI use a file. All ranks run on one
/// machine if is_this_machine(MASTER_ADDR), or if the launcher says so in LOCAL_WORLD_SIZE,
/// OMPI_COMM_WORLD_LOCAL_SIZE, SLURM_STEP_NUM_NODES or MPI_LOCALNRANKS; TESSERA_RANKS_MEET=tcp
/// makes them use the port nevertheless. TESSERA_RANKS_KEY sets the key. Throws Error{usage} if no
/// set matches, or, naming the variable, if one is missing or not a number.
Launch launch(const Environment& environment = own_environment);

/// Returns true if `host` can only mean this machine: localhost, a loopback address, 0.0.0.0 or ::.
bool is_this_machine(const std::string& host);

/// Returns the first host of a Slurm list: "n[0-1,7],m" -> "n0", "rack[02-03]n[1,5]" -> "rack02n1".
std::string first_host(std::string_view list);

/// A Part is one of `count` parts of a program's work, numbered from 0.
struct Part {
  std::int64_t index = 0, count = 1;
  bool whole() const { return count == 1; }
  /// Returns the begin and the end of this part of a sequence of `n` items: it has the items
  /// [begin, end). Parts are contiguous and in order, and their sizes differ by at most one.
  std::int64_t begin(std::int64_t n) const;
  std::int64_t end(std::int64_t n) const { return Part{index + 1, count}.begin(n); }
};

/// The default value of --part.
inline constexpr const char* kWholePart = "all";
inline bool is_part(const std::string& text) { return text != kWholePart; }

/// Parses a value of --part. "3/8" is the third of eight parts. "launcher" is the part that the
/// task of a Slurm array gives (SLURM_ARRAY_TASK_ID, _MIN, _STEP, _COUNT), or else launch().
/// kWholePart is the whole. Throws Error{usage} with the flag's name, --part.
Part part(const std::string& text, const Environment& environment = own_environment);

/// PartNames maps each part's index to the part's name.
class PartNames {
 public:
  /// Adds a part. Throws Error{usage}, naming both parts, if the index is already present.
  void add(const Part& part, const std::string& name);
  /// Checks that all parts are present. Throws Error{usage}, naming the first missing part and
  /// `flag`, the flag that takes the parts.
  void expect_all(std::string_view flag = {}) const;

  bool empty() const { return names_.empty(); }
  /// Returns the total number of parts, which the first added part declares.
  std::int64_t count() const { return count_; }
  /// name() returns the name of the part `index`, from 0; any() returns the name of the first part
  /// present.
  const std::string& name(std::int64_t index) const { return names_.at(index); }
  const std::string& any() const { return names_.begin()->second; }

 private:
  std::map<std::int64_t, std::string> names_;
  std::int64_t count_ = 0;
};

}  // namespace core
