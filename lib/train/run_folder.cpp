#include "train/run_folder.h"

#include <unistd.h>

#include <filesystem>

#include "core/build_info.h"
#include "core/file_text.h"
#include "core/path_kind.h"
#include "model/adapter.h"
#include "model/folder.h"
#include "ranks/meeting.h"

namespace train {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSpool = "stdin.shard.zst";
constexpr const char* kConfig = "config.json";
constexpr const char* kForCommand = "valid.tmp.";  // followed by the process id

// Compares stdin with the copy, block by block.
void expect_same_bytes(core::ByteSource& source, const std::string& path) {
  const core::RandomFile copy(path);
  core::Bytes here(1 << 18), there(1 << 18);
  std::uint64_t at = 0;
  for (;;) {
    const std::size_t n = core::read_fully(source, here);
    if (n == 0 && (at == 0 || at == copy.size())) return;
    bool same = n > 0 && at + n <= copy.size();
    if (same) {
      copy.read_at(at, std::span(there).first(n));
      same = std::equal(here.begin(), here.begin() + static_cast<std::ptrdiff_t>(n), there.begin());
    }
    if (!same)
      core::bad_data("stdin: differs from the data of the run in {}; use another folder",
          fs::path(path).parent_path().string());
    at += n;
  }
}

bool is_model_for_command(std::string_view name) {
  if (!name.starts_with(kForCommand)) return false;
  name.remove_prefix(std::string_view(kForCommand).size());
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

bool has_model(const std::string& folder) {
  return fs::exists(folder + "/model.safetensors") ||
         fs::exists(folder + "/" + model::kAdapterWeightsFile);
}

std::string text_of(const core::Json& object, const std::string& key) {
  return object.contains(key) ? core::dump(object[key]) : "nothing";
}

// Formats what has changed since a run began, for example "no --valid, now it is v.shard.zst". The
// configuration holds fingerprints of files, which mean nothing to a reader, so the current file is
// named.
std::string difference(const core::Json& before, const core::Json& now, const std::string& key,
    const FileNames& files) {
  const std::string a = text_of(before, key), b = text_of(now, key);
  const auto name = files.find(key);
  if (name == files.end()) return fmt::format("{} {}, now {}", key, a, b);
  const auto& [flag, file] = name->second;
  if (b == "\"\"") return fmt::format("{}, now none", flag);
  if (a == "\"\"" || a == "nothing") return fmt::format("no {}, now {}", flag, file);
  return fmt::format("another {} than {}", flag, file);
}

torch::Tensor copy_of(const torch::Tensor& weight) {
  return weight.detach().to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

RunFolder::RunFolder(const std::string& path, Role role) : path_(path) {
  if (role == Role::reads) return;
  lock_.emplace(path,
      "another process is training in this folder; wait for it, or use another folder",
      core::FolderLock::Absent::made);
  const auto kind = core::path_kind(path);
  if (kind == core::PathKind::datastore || kind == core::PathKind::ngrams)
    core::fail(core::Code::cannot_create, "{}: {}; give an empty or new folder", path,
        core::what_path_is(path));
}

bool RunFolder::finished() const { return has_model(path_); }

std::vector<std::string> RunFolder::spool_stdin(std::vector<std::string> paths) const {
  if (paths.empty()) paths.push_back("-");
  const auto dash = std::find(paths.begin(), paths.end(), "-");
  // A finished run only compares its data: shard::Dataset keeps them in a temporary file.
  if (dash == paths.end() || finished()) return paths;
  const std::string path = file(kSpool);
  const auto source = core::open_source("-");
  if (fs::exists(path)) {
    expect_same_bytes(*source, path);
  } else {
    core::Output out(path);
    core::Bytes buffer(1 << 18);
    std::size_t n = core::read_fully(*source, buffer);
    if (n == 0) core::bad_data("no FILE given and stdin is empty");
    for (; n > 0; n = core::read_fully(*source, buffer))
      out.write(std::span<const std::byte>(buffer).first(n));
    out.commit();
  }
  *dash = path;
  return paths;
}

void RunFolder::remove_spool() const {
  std::error_code ignored;
  fs::remove(file(kSpool), ignored);
}

void RunFolder::remove_leftovers() const {
  model::remove_leftovers(path_);
  core::remove_leftovers(
      path_, [](std::string_view name) { return name == kSpool || model::is_model_file(name); });
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(ranks::kMeetingFile)) fs::remove(entry.path());
    if (is_model_for_command(name) && core::holds_only(entry.path(), model::is_model_file))
      fs::remove_all(entry.path());
  }
}

std::string RunFolder::model_for_command() const {
  return fs::absolute(file(kForCommand + std::to_string(::getpid())));
}

bool RunFolder::expect_configuration(
    const core::OrderedJson& config, const std::string& tokenizer, const FileNames& files) const {
  const std::string path = file(kConfig);
  // A run without a checkpoint cannot resume: another run may begin.
  const bool begun = finished() || !model::checkpoints(path_).empty();
  core::Json own = core::Json::object();
  if (fs::exists(path)) {
    const auto both = core::read_json(path);
    if (both.contains("tessera")) own = both["tessera"];
    if (!own.is_object() || !own.contains("training"))
      core::bad_usage("{}: contains a model that was not trained there; use another folder", path_);
  } else if (begun) {
    core::bad_data("{}: is missing, but a run was begun in the folder; use another folder", path);
  } else {
    std::vector<std::string> names = {"metrics.jsonl", "timings.jsonl", "tokenizer.json"};
    for (const auto name : model::carried_names()) names.emplace_back(name);
    for (const auto& name : names) {
      std::error_code ignored;
      if (fs::exists(fs::symlink_status(file(name), ignored)))
        core::bad_usage(
            "{}: exists, but no run was begun in the folder; use another folder", file(name));
    }
  }
  if (!begun) {
    core::write_file(path, core::dump_pretty(config) + "\n");
    // Programs that read an unfinished run need the tokenizer.
    if (!tokenizer.empty()) core::write_file(file("tokenizer.json"), tokenizer + "\n");
    return false;
  }
  core::Json before = own["training"];
  const core::Json now = core::parse_json(core::dump(config["tessera"]["training"]), path);
  // An option that the program which began the run did not have was at its default.
  for (const auto& defaults : {core::to_json(nn::ModelOptions()), core::to_json(Recipe())}) {
    const core::Json usual = core::parse_json(core::dump(defaults), path);
    for (const auto& [key, value] : usual.items())
      if (now.contains(key) && !before.contains(key)) before[key] = value;
  }
  const bool further =
      now.contains("further") && text_of(now, "further") != text_of(before, "further");
  const auto other_way = [&](const std::string& key) -> std::string {
    if (finished()) return ", there with --from " + path_ + " to train it further";
    if (key != "steps" || now["steps"] <= before["steps"]) return "";
    return "; when it has finished, --steps " + text_of(now, key) + " trains it further";
  };
  for (const auto& item : config["tessera"]["training"].items()) {
    const std::string& key = item.key();
    if (further && (key == "further" || key == "steps" || key == "valid_every")) continue;
    if (text_of(before, key) != text_of(now, key))
      core::bad_usage("{}: was begun with {}; use the same, or another folder{}", path_,
          difference(before, now, key, files), other_way(key));
  }
  for (const auto& item : before.items()) {
    if (!now.contains(item.key()))
      core::bad_usage(
          "{}: was begun with {} {}, which is not given now; use the same, or another folder{}",
          path_, item.key(), core::dump(item.value()), other_way(item.key()));
  }
  const core::OrderedJson& now_own = config["tessera"];
  if (!finished() && !further && now_own.contains("builds") &&
      text_of(own, "builds") != core::dump(now_own["builds"]))
    core::write_file(path, core::dump_pretty(config) + "\n");
  return further;
}

void RunFolder::begin_further(const core::OrderedJson& config) const {
  // In this order: with the old config.json and no model, the run ends as it was, or is trained
  // further from the same checkpoint.
  fs::remove(file("model.safetensors"));
  core::write_file(file(kConfig), core::dump_pretty(config) + "\n");
}

void RunFolder::prune(std::int64_t keep, std::int64_t every, bool done) const {
  auto all = model::checkpoints(path_);
  std::reverse(all.begin(), all.end());
  bool latest = !done;
  for (const auto& checkpoint : all) {
    const bool asked_for = every > 0 && checkpoint.step % every == 0 && keep-- > 0;
    if (!latest && !asked_for) model::remove_checkpoint(checkpoint);
    latest = false;
  }
}

core::OrderedJson builds_of(const std::string& folder) {
  auto builds = core::Json::array();
  const std::string path = folder + "/" + kConfig;
  if (!folder.empty() && core::exists(path)) {
    const auto config = core::read_json(path);
    const auto own = config.is_object() ? config.value("tessera", core::Json()) : core::Json();
    if (own.is_object() && own.contains("builds") && own["builds"].is_array())
      builds = own["builds"];
  }
  // Json sorts keys, so that a list that was read equals the one that was written.
  const core::Json here = {{"version", core::build::kVersion}, {"revision", core::build::kGit}};
  if (builds.empty() || builds.back() != here) builds.push_back(here);
  return core::OrderedJson(builds);
}

std::vector<std::int64_t> further_from(const std::string& folder, std::int64_t steps) {
  const std::string path = folder + "/" + kConfig;
  const auto latest = model::latest_checkpoint(folder);
  if ((!has_model(folder) && !latest) || !core::exists(path)) return {};
  const auto config = core::read_json(path);
  const auto own = config.is_object() ? config.value("tessera", core::Json()) : core::Json();
  const auto training = own.is_object() ? own.value("training", core::Json()) : core::Json();
  if (!training.is_object() || !training.contains("steps")) return {};
  std::vector<std::int64_t> from;
  if (training.contains("further"))
    from = core::get<std::vector<std::int64_t>>(training, "further", path);
  const auto before = core::get<std::int64_t>(training, "steps", path);
  if (before < steps && (has_model(folder) || latest->step == before)) from.push_back(before);
  return from;
}

OpenedRun open_run(
    const std::string& path, const std::vector<std::string>& files, ranks::Group& group) {
  const bool piped = files.empty() || std::find(files.begin(), files.end(), "-") != files.end();
  if (!group.is_alone() && piped)
    core::bad_usage("FILE: several ranks cannot share stdin; give files");
  OpenedRun run;
  group.first_does([&] {
    run.folder = std::make_unique<RunFolder>(path);
    return 0;
  });
  if (!run.folder) run.folder = std::make_unique<RunFolder>(path, RunFolder::Role::reads);
  run.shards = run.folder->spool_stdin(files);
  return run;
}

Candidates::Candidates(
    std::int64_t average, std::int64_t every, std::int64_t steps, std::string by, bool higher)
    : average_(average), every_(every), steps_(steps), by_(std::move(by)), higher_(higher) {}

bool Candidates::reads(std::int64_t step) const {
  const auto left = steps_ - step;
  return left % every_ == 0 && left / every_ < average_;
}

void Candidates::passed(std::int64_t step, const NamedWeights& weights) {
  if (!reads(step)) return;
  const torch::NoGradGuard no_grad;
  for (const auto& [name, weight] : weights) {
    auto& sum = kept_[name];
    sum = sum.defined() ? sum + weight.detach().to(torch::kCPU) : copy_of(weight);
  }
  ++summed_;
}

void Candidates::scored(std::int64_t step, double score, const NamedWeights& weights,
    std::optional<double> joint_temperature) {
  const bool better = !best_ || (higher_ ? score > best_->score : score < best_->score);
  if (!better) return;
  best_ = {score, step};
  if (average_ > 0) return;
  joint_temperature_ = joint_temperature;
  for (const auto& [name, weight] : weights) kept_[name] = copy_of(weight);
}

void Candidates::give(const NamedWeights& weights) const {
  if (kept_.empty()) return;
  const torch::NoGradGuard no_grad;
  for (const auto& [name, weight] : weights) {
    const auto& kept = kept_.at(name);
    torch::Tensor(weight).copy_(average_ > 0 ? kept / static_cast<double>(summed_) : kept);
  }
}

void Candidates::put(model::Checkpoint& checkpoint) const {
  auto& facts = checkpoint.facts;
  facts["summed"] = summed_;
  if (best_)
    facts.update({{"best_score", best_->score}, {"best_step", best_->step}, {"best_by", by_}});
  if (joint_temperature_) facts["best_joint_temperature"] = *joint_temperature_;
  for (const auto& [name, tensor] : kept_) checkpoint.tensors["candidate." + name] = tensor;
}

void Candidates::get(const model::Checkpoint& checkpoint, const NamedWeights& weights) {
  const auto& facts = checkpoint.facts;
  summed_ = core::get<std::int64_t>(facts, "summed", checkpoint.origin);
  if (facts.contains("best_score")) {
    best_ = {core::get<double>(facts, "best_score", checkpoint.origin),
        core::get<std::int64_t>(facts, "best_step", checkpoint.origin)};
    const auto by = core::get<std::string>(facts, "best_by", checkpoint.origin);
    if (by != by_)
      core::bad_usage("{}: the best model so far was chosen by {}, now by {}; use the same",
          checkpoint.origin, by, by_);
  }
  if (facts.contains("best_joint_temperature"))
    joint_temperature_ = core::get<double>(facts, "best_joint_temperature", checkpoint.origin);
  if (summed_ == 0 && (average_ > 0 || !best_)) return;
  for (const auto& [name, weight] : weights) kept_[name] = checkpoint.tensor("candidate." + name);
}

}  // namespace train
