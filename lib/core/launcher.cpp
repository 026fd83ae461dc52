#include "core/launcher.h"

#include <arpa/inet.h>

#include <cstdlib>

#include "core/units.h"

namespace core {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

/// Variables, by name.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  bool has(const char* name) const { return !text(name).empty(); }
  std::string text(const char* name) const {
    const char* const value = environment_(name);
    return value == nullptr ? "" : value;
  }
  std::int64_t number(const char* name, std::int64_t least, std::int64_t most) const {
    const std::string value = text(name);
    if (value.empty()) bad_usage("{} is not set; the launcher should set it", name);
    const auto number = read_number<std::int64_t>(value);
    if (!number || *number < least || *number > most)
      bad_usage("{} is '{}', not a number from {} to {}", name, value, least, most);
    return *number;
  }
  std::int64_t number_or(const char* name, std::int64_t otherwise) const {
    return has(name) ? number(name, 0, kMostRanks) : otherwise;
  }

 private:
  const Environment& environment_;
};

// `here` is the variable that holds the number of ranks on this machine, or "".
Launch ranks_of(const Variables& of, const char* launcher, const char* rank, const char* size,
    const char* local, const char* here) {
  Launch launch;
  launch.launcher = launcher;
  launch.size = of.number(size, 1, kMostRanks);
  launch.rank = of.number(rank, 0, launch.size - 1);
  launch.local = of.number_or(local, 0);
  launch.one_machine = of.number_or(here, 0) == launch.size;
  return launch;
}

// Derives a port that two steps on one machine rarely share, below the range of ephemeral ports.
std::uint16_t port_of(std::int64_t job, std::int64_t step) {
  constexpr std::int64_t kFirst = 10'000, kPorts = 20'000;
  return static_cast<std::uint16_t>(kFirst + (job * 61 + step) % kPorts);
}

void meet(Launch& launch, const Variables& of) {
  constexpr std::int64_t kMostId = std::int64_t{1} << 32;
  if (of.has("MASTER_ADDR") && of.has("MASTER_PORT")) {
    launch.host = of.text("MASTER_ADDR");
    launch.port = static_cast<std::uint16_t>(of.number("MASTER_PORT", 1, 65'535));
    launch.served = of.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  } else if (launch.launcher == "srun") {
    launch.host = first_host(of.text("SLURM_STEP_NODELIST"));
    if (launch.host.empty()) bad_usage("SLURM_STEP_NODELIST is not set, as srun does");
    launch.port =
        port_of(of.number("SLURM_JOB_ID", 0, kMostId), of.number("SLURM_STEP_ID", 0, kMostId));
  } else if (!of.has("PMIX_NAMESPACE")) {
    bad_usage(
        "MASTER_ADDR and MASTER_PORT are not set; set them to the address and port of rank 0");
  }
  const std::string way = of.text("TESSERA_RANKS_MEET");
  if (!way.empty() && way != "auto" && way != "tcp")
    bad_usage("TESSERA_RANKS_MEET is '{}', not auto or tcp", way);
  launch.one_machine = way != "tcp" && (launch.one_machine || is_this_machine(launch.host));
  launch.key = of.text("TESSERA_RANKS_KEY");
}

}  // namespace

const char* own_environment(const char* name) { return std::getenv(name); }

Launch launch(const Environment& environment) {
  const Variables of(environment);
  Launch launch;
  if (of.has("RANK") || of.has("WORLD_SIZE")) {
    launch = ranks_of(of, "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  } else if (of.has("OMPI_COMM_WORLD_RANK")) {
    launch = ranks_of(of, "mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  } else if (of.has("SLURM_STEP_ID")) {
    launch = ranks_of(of, "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "");
    launch.one_machine = of.number_or("SLURM_STEP_NUM_NODES", 0) == 1;
  } else if (of.has("PMI_RANK")) {
    launch = ranks_of(of, "mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
  } else {
    bad_usage(
        "launcher: no launcher started this process (none of RANK, OMPI_COMM_WORLD_RANK, "
        "SLURM_STEP_ID and PMI_RANK is set); start it with torchrun, mpirun or srun");
  }
  meet(launch, of);
  const char* const restarts =
      of.has("TORCHELASTIC_RESTART_COUNT") ? "TORCHELASTIC_RESTART_COUNT" : "SLURM_RESTART_COUNT";
  const std::string start = of.text("PMIX_NAMESPACE");
  if (start.find('/') != start.npos)
    bad_usage("PMIX_NAMESPACE is '{}', which cannot be a file name", start);
  launch.name = fmt::format("{}.{}", start, of.number_or(restarts, 0));
  return launch;
}

bool is_this_machine(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1)
    return four.s_addr == htonl(INADDR_ANY) || ntohl(four.s_addr) >> 24U == IN_LOOPBACKNET;
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1)
    return IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_UNSPECIFIED(&six);
  return host == "localhost";
}

std::string first_host(std::string_view list) {
  std::string host;
  for (std::size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      host += list[at];
      continue;
    }
    const auto close = std::min(list.find(']', at), list.size());
    const auto numbers = list.substr(at + 1, close - at - 1);
    host += numbers.substr(0, numbers.find_first_of(",-"));
    at = close;
  }
  return host;
}

std::int64_t Part::begin(std::int64_t n) const {
  const std::int64_t each = n / count, rest = n % count;
  return index * each + std::min(index, rest);
}

Part part(const std::string& text, const Environment& environment) {
  if (!is_part(text)) return {};
  const Variables of(environment);
  if (text == "launcher") {
    if (!of.has("SLURM_ARRAY_TASK_ID")) {
      const auto joined = launch(environment);
      return {joined.rank, joined.size};
    }
    constexpr std::int64_t kMost = std::int64_t{1} << 32;
    const auto number = [&](const char* name) { return of.number(name, 0, kMost); };
    const std::int64_t step = of.has("SLURM_ARRAY_TASK_STEP")
                                  ? std::max<std::int64_t>(1, number("SLURM_ARRAY_TASK_STEP"))
                                  : 1;
    const std::int64_t count = number("SLURM_ARRAY_TASK_COUNT"),
                       away = number("SLURM_ARRAY_TASK_ID") - number("SLURM_ARRAY_TASK_MIN");
    if (away < 0 || away % step != 0 || away / step >= count)
      bad_usage("--part launcher: the array's task numbers are not consecutive; use --array=1-{}",
          std::max<std::int64_t>(1, count));
    return {away / step, count};
  }
  const auto slash = std::min(text.find('/'), text.size());
  const auto index = read_number<std::int64_t>(text.substr(0, slash));
  const auto count = read_number<std::int64_t>(text.substr(std::min(slash + 1, text.size())));
  if (!index || !count || *index < 1 || *index > *count || *count > kMostRanks)
    bad_usage("--part: '{}' is not I/N with I from 1 to N, launcher or all", text);
  return {*index - 1, *count};
}

void PartNames::add(const Part& part, const std::string& name) {
  if (names_.empty()) count_ = part.count;
  const auto [twice, added] = names_.emplace(part.index, name);
  if (!added) bad_usage("{}: is part {}, like {}", name, part.index + 1, twice->second);
}

void PartNames::expect_all(std::string_view flag) const {
  for (std::int64_t index = 0; index < count_; ++index)
    if (names_.count(index) == 0)
      bad_usage("{}part {} of {} is missing", flag.empty() ? "" : fmt::format("--{}: ", flag),
          index + 1, count_);
}

}  // namespace core
