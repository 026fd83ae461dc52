#include "train/validation.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "infer/score/tune.h"
#include "infer/sources/context_source.h"
#include "train/log.h"

extern char** environ;

namespace train {
namespace {

// Returns as many earlier segments as a token sees in training.
std::string reach(const Recipe& recipe) {
  const auto& batches = recipe.batches;
  const std::int64_t segments = batches.batches == "streams" ? recipe.objective.memory_previous + 1
                                : batches.batches == "runs"  ? batches.run_length
                                                             : batches.batch;
  return fmt::format("{}seg", segments);
}

struct Gone {
  const std::string& path;
  ~Gone() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

using torch::Tensor;

constexpr std::int64_t kBatches = 8;
constexpr std::int64_t kQueries = 512;  // queries whose scores exist at once

// Returns the sums of weight * nll at each temperature: (n), float64 on the CPU.
Tensor nats_of(nn::Model& model, const nn::Batch& batch, const nn::MemoryRule& rule,
    const std::vector<double>& temperatures) {
  const nn::Hidden hidden = model.architecture->forward(batch, nullptr);
  const auto dtype = model.head->weights().at(0).scalar_type();
  const Tensor f = hidden.output.flatten(0, 1), keys = hidden.key.flatten(0, 1).to(dtype),
               targets = batch.targets.flatten(), weight = batch.weight.flatten();
  const infer::HeadRows head = infer::head_rows(*model.head, f, targets);
  const nn::Entries entries{keys, targets, batch.place.flatten()};
  Tensor nats = torch::zeros({static_cast<std::int64_t>(temperatures.size())}, torch::kFloat64);
  for (std::int64_t begin = 0; begin < f.size(0); begin += kQueries) {
    const std::int64_t end = std::min(begin + kQueries, f.size(0));
    const auto rows = [&](const Tensor& tensor) { return tensor.slice(0, begin, end); };
    const auto seen = nn::tempered_masses(
        rows(keys), entries.place.slice(begin, end), rows(targets), entries, rule, temperatures);
    const Tensor log_prob =
        nn::join({rows(head.log_prob), rows(head.log_z), seen.all, seen.positive});
    nats -= (log_prob * rows(weight)).sum(1, /*keepdim=*/false, torch::kFloat64).to(torch::kCPU);
  }
  return nats;
}

using Clock = std::chrono::steady_clock;
constexpr int kPollMs = 100, kClosedPollMs = 10;  // while its stdout is open, and after
constexpr std::chrono::seconds kGrace{10};        // between SIGTERM and SIGKILL
constexpr std::size_t kTail = 1 << 16;            // bytes of stdout that may hold the last number

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string with_folder(const std::string& command, const std::string& folder) {
  std::string out;
  for (std::size_t at = 0; at < command.size();) {
    const bool here = command.compare(at, 2, "{}") == 0;
    out += here ? quoted(folder) : std::string(1, command[at]);
    at += here ? 2 : 1;
  }
  return out;
}

// A process and the reading end of the pipe that is its stdout.
class Child {
 public:
  Child(const std::string& command, const std::string& folder) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_with(errno);
    fd_ = core::Descriptor(ends[0]);
    ::fcntl(fd_.fd(), F_SETFL, O_NONBLOCK);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    std::string model = "TESSERA_MODEL=" + folder, text = with_folder(command, folder),
                shell = "sh", option = "-c";
    std::vector<char*> arguments{shell.data(), option.data(), text.data(), nullptr}, variables;
    for (char** variable = environ; *variable != nullptr; ++variable)
      if (std::string_view(*variable).rfind("TESSERA_MODEL=", 0) != 0)
        variables.push_back(*variable);
    variables.insert(variables.end(), {model.data(), nullptr});
    const int error =
        ::posix_spawn(&pid_, "/bin/sh", &files, &how, arguments.data(), variables.data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    ::close(ends[1]);
    if (error != 0) fail_with(error);
  }
  ~Child() {
    fd_.reset();
    if (!status_) {
      ::kill(-pid_, SIGKILL);
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
    }
  }
  Child(Child&&) = delete;

  // Waits briefly and reads the available output. Returns the status of wait() once the process has
  // ended.
  std::optional<int> poll() {
    pollfd ready{fd_.fd(), POLLIN, 0};
    ::poll(&ready, open_ ? 1 : 0, open_ ? kPollMs : kClosedPollMs);
    read();
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = status;
      read();
    }
    return status_;
  }
  void signal(int number) const { ::kill(-pid_, number); }
  const std::string& output() const { return output_; }

 private:
  [[noreturn]] static void fail_with(int error) {
    core::fail_errno(core::Code::io, "--valid-command: cannot start the command", error);
  }
  void read() {
    std::array<char, 4096> buffer{};
    for (;;) {
      const ssize_t n = ::read(fd_.fd(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) open_ = false;
      if (n <= 0) break;
      output_.append(buffer.data(), static_cast<std::size_t>(n));
      if (output_.size() > 2 * kTail) output_.erase(0, output_.size() - kTail);
    }
  }
  core::Descriptor fd_;
  pid_t pid_ = -1;
  bool open_ = true;
  std::optional<int> status_;
  std::string output_;
};

}  // namespace

bool validates_memory(const Run& run) {
  const auto rule = nn::MemoryRule::parse(run.recipe.objective.memory);
  return run.valid && (rule.local || rule.far);
}

Validated validate(Run& run) {
  const auto& recipe = run.recipe;
  infer::MemoryOptions asked;
  asked.weights = "constant";
  if (nn::MemoryRule::parse(recipe.objective.memory).far)
    asked.of<infer::ContextOptions>().long_reach = reach(recipe);
  asked.joint_temperature = recipe.objective.memory_temperature;
  model::TrainingFacts facts;
  facts.memory = run.facts["memory"];
  facts.segment = recipe.batches.segment;
  auto windows = nn::arch_facts(run.model->options.arch).reads_source
                     ? infer::pair_windows(*run.valid, *run.model, recipe.batches.batch_tokens)
                     : infer::plan_windows({}, *run.model, facts);
  windows.learned = run.rules.marks != nullptr && run.valid->header().marked;
  if (run.rules.begin >= 0) {
    windows.beginning = run.rules.begin;
    if (!windows.carried) windows.window_token = run.rules.begin;
  }
  const auto memory = infer::plan_memory(asked, windows, *run.model, facts);
  if (!validates_memory(run))
    return {infer::score(*run.model, *run.valid, windows, memory, run.device), std::nullopt};
  infer::TuneOptions grid;
  grid.points["temperature"] = calibration_points(memory.joint_temperature);
  const auto tuned = infer::tune(*run.model, *run.valid, windows, memory, grid, run.device);
  return {tuned.totals, tuned.value(tuned.best, "temperature")};
}

std::optional<double> command_score(const std::string& command, const Objective& objective,
    std::optional<double> joint_temperature, const RunFolder& folder,
    const std::function<bool()>& stop) {
  const std::string path = folder.model_for_command();
  core::make_new_folder(path);
  const Gone gone{path};
  objective.save(path, joint_temperature);
  return run_valid_command(command, path, stop);
}

std::vector<double> calibration_points(double trained, double least) {
  std::vector<double> points;
  for (const double step : kCalibrationSteps)
    if (step >= least) points.push_back(rounded(step * trained));
  return points;
}

std::vector<MicroBatch> calibration_batches(const Run& run) {
  std::vector<MicroBatch> batches;
  for (std::int64_t i = 0; i < kBatches; ++i) {
    batches.push_back(read_batch(*run.data, run.order->rows(i), i));
    apply(run.rules, batches.back());
  }
  return batches;
}

double calibrate(nn::Model& model, const std::vector<MicroBatch>& batches,
    const std::function<nn::MemoryRule(std::int64_t)>& rule, double trained, torch::Device device) {
  const torch::NoGradGuard no_gradient;
  const bool training = model.is_training();
  model.eval();
  const std::vector<double> points = calibration_points(trained, 1);
  Tensor nats = torch::zeros({static_cast<std::int64_t>(points.size())}, torch::kFloat64);
  for (const auto& micro : batches)
    nats += nats_of(model, micro.batch.to(device), rule(micro.index), points);
  model.train(training);
  const auto* const sums = nats.const_data_ptr<double>();
  return points[static_cast<std::size_t>(std::min_element(sums, sums + points.size()) - sums)];
}

std::optional<double> last_number(const std::string& text) {
  std::optional<double> last;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.';
  };
  for (std::size_t at = 0; at < text.size();) {
    double value = 0;
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const char* const from = text.data() + at;
    const char* const end = text.data() + text.size();
    const auto found = begins ? std::from_chars(from, end, value)
                              : std::from_chars_result{from, std::errc::invalid_argument};
    if (found.ec == std::errc() && std::isfinite(value) &&
        (found.ptr == end || !is_word(*found.ptr))) {
      last = value;
      at = static_cast<std::size_t>(found.ptr - text.data());
    } else {
      ++at;
    }
  }
  return last;
}

std::optional<double> run_valid_command(
    const std::string& command, const std::string& folder, const std::function<bool()>& stop) {
  Child child(command, folder);
  std::optional<Clock::time_point> asked_to_stop;
  std::optional<int> status;
  while (!(status = child.poll())) {
    if (!asked_to_stop && stop && stop()) {
      child.signal(SIGTERM);
      asked_to_stop = Clock::now();
    }
    if (asked_to_stop && Clock::now() - *asked_to_stop > kGrace) child.signal(SIGKILL);
  }
  if (asked_to_stop || (stop && stop())) return std::nullopt;
  if (WIFSIGNALED(*status))
    core::bad_data("--valid-command: ended by signal {}: {}", WTERMSIG(*status), command);
  if (WEXITSTATUS(*status) != 0)
    core::bad_data("--valid-command: failed with status {}: {}", WEXITSTATUS(*status), command);
  const auto score = last_number(child.output());
  if (!score) core::bad_data("--valid-command: printed no number: {}", command);
  return score;
}

}  // namespace train
