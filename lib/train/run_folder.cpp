#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "core/io.h"
#include "model/checkpoint.h"

namespace train {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSpool = "stdin.shard.zst";
constexpr const char* kConfig = "config.json";

// Compares stdin with the copy, a piece at a time.
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
      core::fail(core::Code::bad_data,
                 "stdin: not the data that {} was begun with; use another folder",
                 fs::path(path).parent_path().string());
    at += n;
  }
}

std::string text_of(const core::Json& object, const std::string& key) {
  return object.contains(key) ? core::dump(object[key]) : "nothing";
}

}  // namespace

RunFolder::RunFolder(const std::string& path) : path_(path), made_(!fs::exists(path)) {
  core::make_folders(path);
  fd_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0)
    core::fail(core::Code::cannot_create, "{}: cannot open: {}", path, core::error_text(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(fd_);
    if (error == EWOULDBLOCK)
      core::fail(core::Code::usage,
                 "{}: another process trains in it; wait for it, or use another folder", path);
    core::fail(core::Code::cannot_create, "{}: cannot lock: {}", path, core::error_text(error));
  }
  model::remove_leftovers(path);
}

RunFolder::~RunFolder() {
  if (made_) ::rmdir(path_.c_str());  // fails where something is in it
  ::close(fd_);
}

bool RunFolder::finished() const { return fs::exists(file("model.safetensors")); }

std::vector<std::string> RunFolder::spool_stdin(std::vector<std::string> paths) const {
  if (paths.empty()) paths.push_back("-");
  const auto dash = std::find(paths.begin(), paths.end(), "-");
  // The data of a finished run are only compared: shard::Dataset keeps them in a temporary file.
  if (dash == paths.end() || finished()) return paths;
  const std::string path = file(kSpool);
  const auto source = core::open_source("-");
  if (fs::exists(path)) {
    expect_same_bytes(*source, path);
  } else {
    core::Output out(path);
    core::Bytes buffer(1 << 18);
    while (const std::size_t n = source->read(buffer))
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

void RunFolder::expect_configuration(const core::OrderedJson& config) const {
  const std::string path = file(kConfig);
  // A run that saved nothing has nothing to go on from: another may begin.
  const bool begun = finished() || !model::checkpoints(path_).empty();
  core::Json own = core::Json::object();
  if (fs::exists(path)) {
    const auto both = core::parse_json(core::read_text(path), path);
    if (both.contains("tessera")) own = both["tessera"];
    if (!own.is_object() || !own.contains("training"))
      core::fail(core::Code::usage,
                 "{}: the folder holds a model that was not trained in it; use another folder",
                 path_);
  } else if (begun) {
    core::fail(core::Code::bad_data,
               "{}: is not there, but a run was begun in the folder; use another folder", path);
  }
  if (!begun) {
    core::write_file(path, core::dump_pretty(config) + "\n");
    return;
  }
  const core::Json& before = own["training"];
  const core::Json now = core::parse_json(core::dump(config["tessera"]["training"]), path);
  for (const auto& item : config["tessera"]["training"].items()) {
    const std::string key = item.key(), a = text_of(before, key), b = text_of(now, key);
    if (a != b)
      core::fail(core::Code::usage,
                 "{}: was begun with {} {}, now it is {}; give the same, or use another folder",
                 path_, key, a, b);
  }
  for (const auto& item : before.items()) {
    if (!now.contains(item.key()))
      core::fail(core::Code::usage,
                 "{}: was begun with {} {}, which this program does not know; use another folder",
                 path_, item.key(), core::dump(item.value()));
  }
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

}  // namespace train
