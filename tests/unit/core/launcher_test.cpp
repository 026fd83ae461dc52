#include "core/launcher.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "unit/thrown.h"

namespace {

using Variables = std::map<std::string, std::string>;

core::Environment of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

}  // namespace

DOCTEST_TEST_CASE("torchrun, or variables by hand, say rank, size and where to meet") {
  Variables variables = {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"},
      {"MASTER_ADDR", "n7"}, {"MASTER_PORT", "29511"}};
  auto launch = core::launch(of(variables));
  DOCTEST_CHECK(launch.launcher == "torchrun");
  DOCTEST_CHECK(launch.rank == 3);
  DOCTEST_CHECK(launch.size == 4);
  DOCTEST_CHECK(launch.local == 1);
  DOCTEST_CHECK(launch.host == "n7");
  DOCTEST_CHECK(launch.port == 29511);
  DOCTEST_CHECK(!launch.served);
  DOCTEST_CHECK(launch.name == ".0");
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["TORCHELASTIC_RESTART_COUNT"] = "2";
  launch = core::launch(of(variables));
  DOCTEST_CHECK(launch.served);
  DOCTEST_CHECK(launch.name == ".2");
}

DOCTEST_TEST_CASE("ranks are on one machine where the address or the launcher says so") {
  Variables variables = {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "29511"}};
  const auto one_machine = [&](const std::string& host, const std::string& here = "") {
    variables["MASTER_ADDR"] = host;
    variables["LOCAL_WORLD_SIZE"] = here;
    return core::launch(of(variables)).one_machine;
  };
  for (const char* host : {"127.0.0.1", "127.0.1.1", "localhost", "::1", "0.0.0.0"})
    DOCTEST_CHECK(one_machine(host));
  for (const char* host : {"n7", "10.0.0.1", "128.0.0.1", "fe80::1"})
    DOCTEST_CHECK(!one_machine(host));
  DOCTEST_CHECK(one_machine("n7", "4"));
  DOCTEST_CHECK(!one_machine("n7", "2"));
  variables["TESSERA_RANKS_MEET"] = "tcp";
  variables["TESSERA_RANKS_KEY"] = "a b";
  DOCTEST_CHECK(!one_machine("127.0.0.1", "4"));
  DOCTEST_CHECK(core::launch(of(variables)).key == "a b");
  variables["TESSERA_RANKS_MEET"] = "udp";
  DOCTEST_CHECK(thrown([&] { core::launch(of(variables)); }).names("TESSERA_RANKS_MEET"));
  Variables other = {{"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "17"}, {"SLURM_PROCID", "1"},
      {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NODELIST", "n7"}, {"SLURM_STEP_NUM_NODES", "1"}};
  DOCTEST_CHECK(core::launch(of(other)).one_machine);
  other["SLURM_STEP_NUM_NODES"] = "2";
  DOCTEST_CHECK(!core::launch(of(other)).one_machine);
  other = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"PMIX_NAMESPACE", "3041"}};
  DOCTEST_CHECK(core::launch(of(other)).one_machine);
  DOCTEST_CHECK(core::launch(of(other)).host.empty());
}

DOCTEST_TEST_CASE("srun's tasks meet at the step's first host; a requeued job has another name") {
  const Variables variables = {{"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "17"},
      {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "9"}, {"SLURM_STEP_NUM_TASKS", "2"},
      {"SLURM_LOCALID", "0"}, {"SLURM_STEP_NODELIST", "n[0-1]"}, {"SLURM_RESTART_COUNT", "1"},
      {"SLURM_LAUNCH_NODE_IPADDR", "10.73.0.1"}};
  const auto launch = core::launch(of(variables));
  DOCTEST_CHECK(launch.launcher == "srun");
  DOCTEST_CHECK(launch.rank == 1);
  DOCTEST_CHECK(launch.size == 2);
  DOCTEST_CHECK(launch.host == "n0");
  DOCTEST_CHECK(launch.port >= 10'000);
  DOCTEST_CHECK(launch.port < 30'000);
  DOCTEST_CHECK(launch.name == ".1");
  Variables other = variables;
  other["SLURM_STEP_ID"] = "1";
  DOCTEST_CHECK(core::launch(of(other)).port != launch.port);
}

DOCTEST_TEST_CASE("Open MPI's ranks meet by a file, also where srun started mpirun's daemons") {
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"},
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"},
      {"PMIX_NAMESPACE", "3041"}};
  const auto launch = core::launch(of(variables));
  DOCTEST_CHECK(launch.launcher == "mpirun");
  DOCTEST_CHECK(launch.rank == 1);
  DOCTEST_CHECK(launch.size == 4);
  DOCTEST_CHECK(launch.host.empty());
  DOCTEST_CHECK(launch.name == "3041.0");
  variables.erase("PMIX_NAMESPACE");
  DOCTEST_CHECK(thrown([&] { core::launch(of(variables)); }).names("MASTER_ADDR"));
}

DOCTEST_TEST_CASE("a batch script, and variables that are no numbers, are refused by name") {
  const auto refused = [](const Variables& variables) {
    const auto error = thrown([&] { core::launch(of(variables)); });
    DOCTEST_CHECK(error.code == static_cast<int>(core::Code::usage));
    return error;
  };
  DOCTEST_CHECK(refused({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}})
                    .names("no launcher started this process"));
  DOCTEST_CHECK(refused({{"RANK", "0"}}).names("WORLD_SIZE"));
  DOCTEST_CHECK(refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).names("RANK is '2'"));
  DOCTEST_CHECK(refused({{"RANK", "0"}, {"WORLD_SIZE", "2x"}}).names("'2x'"));
}

DOCTEST_TEST_CASE("the first host of a list of Slurm's") {
  DOCTEST_CHECK(core::first_host("n[0-1]") == "n0");
  DOCTEST_CHECK(core::first_host("n[07,9],m1") == "n07");
  DOCTEST_CHECK(core::first_host("m1,n[0-1]") == "m1");
  DOCTEST_CHECK(core::first_host("rack[02-03]n[1,5].x") == "rack02n1.x");
  DOCTEST_CHECK(core::first_host("") == "");
}

DOCTEST_TEST_CASE("parts cut work without a gap, by number or by the launcher") {
  const auto part = core::part("3/8");
  DOCTEST_CHECK(part.index == 2);
  DOCTEST_CHECK(part.count == 8);
  DOCTEST_CHECK(core::part(core::kWholePart).whole());
  for (const std::int64_t n : {0, 1, 7, 8, 9, 100}) {
    for (const std::int64_t count : {1, 2, 3, 8}) {
      std::int64_t at = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const core::Part piece{i, count};
        DOCTEST_CHECK(piece.begin(n) == at);
        DOCTEST_CHECK(piece.end(n) - at >= n / count);
        DOCTEST_CHECK(piece.end(n) - at <= n / count + 1);
        at = piece.end(n);
      }
      DOCTEST_CHECK(at == n);
    }
  }
  for (const char* wrong : {"", "0/8", "9/8", "3", "3/", "/8", "a/b", "3/8x", "-1/8", "1/0"})
    DOCTEST_CHECK(thrown([&] { core::part(wrong); }).names("--part"));
  const Variables array = {{"SLURM_ARRAY_TASK_ID", "7"}, {"SLURM_ARRAY_TASK_MIN", "1"},
      {"SLURM_ARRAY_TASK_STEP", "2"}, {"SLURM_ARRAY_TASK_COUNT", "4"}, {"SLURM_PROCID", "0"}};
  DOCTEST_CHECK(core::part("launcher", of(array)).index == 3);
  DOCTEST_CHECK(core::part("launcher", of(array)).count == 4);
  const Variables ranks = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  DOCTEST_CHECK(core::part("launcher", of(ranks)).index == 1);
}
