#include "text/documents/folder_texts.h"

#include <filesystem>

#include "core/path_kind.h"
#include "core/plain_text.h"
#include "shard/documents_codec.h"
#include "shard/unpacked_source.h"

namespace text {
namespace {

namespace fs = std::filesystem;
using core::Code;
using core::fail;

constexpr std::size_t kStartBytes = 4096;

// Files that were skipped for one reason.
struct LeftOut {
  std::string_view why;
  std::uint64_t count = 0;
  std::string first = {};
  void add(const std::string& path) {
    if (count++ == 0) first = path;
  }
  void note(std::vector<std::string>& notes) const {
    if (count == 0) return;
    notes.push_back(fmt::format("{}{}: left out: {}", core::printable(first),
        count > 1 ? fmt::format(" and {} more", count - 1) : "", why));
  }
};

// Whether the unpacked file does not begin like a text. As in git, a NUL occurs in no text.
bool begins_as_no_text(const std::string& path) {
  if (shard::is_shard(path)) return true;
  shard::UnpackedSource source(core::open_source(path));
  std::string start(kStartBytes, '\0');
  start.resize(core::read_fully(source, std::as_writable_bytes(std::span(start))));
  return start.find('\0') != start.npos || !core::what_is_no_text(start).empty();
}

class FolderWalk {
 public:
  explicit FolderWalk(FolderTexts& found) : found_(found) {}

  void add(const std::string& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
      fail(Code::no_input, "{}: --recursive takes folders; it {}", folder,
          core::what_path_is(folder));
    std::vector<std::string> names;
    fs::recursive_directory_iterator at(
        folder, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      const std::string& path = at->path().native();
      if (at->path().filename().native().starts_with('.')) {
        hidden_.add(path);
        at.disable_recursion_pending();
      } else if (at->is_symlink(error)) {
        links_.add(path);
      } else if (at->is_regular_file(error)) {
        names.push_back(at->path().lexically_relative(folder).generic_string());
      } else if (!at->is_directory(error)) {
        special_.add(path);
      }
    }
    if (error) fail(Code::io, "{}: cannot be read: {}", folder, error.message());
    std::sort(names.begin(), names.end());
    for (const auto& name : names) take(folder, name);
  }

  void finish() {
    for (const auto* left : {&hidden_, &links_, &special_, &others_}) left->note(found_.notes);
  }

 private:
  void take(const std::string& folder, const std::string& name) {
    const std::string path = (fs::path(folder) / name).native();
    if (begins_as_no_text(path)) return others_.add(path);
    std::uint64_t replaced = 0;
    std::string clean = core::with_replacements(name, replaced);
    if (clean.find('\n') != clean.npos || clean.size() > shard::kMostNameBytes)
      core::bad_data("{}: is not a valid document name, which is one line of at most {} bytes",
          core::printable(path), shard::kMostNameBytes);
    found_.paths.push_back(path);
    found_.names.push_back(std::move(clean));
  }

  FolderTexts& found_;
  LeftOut hidden_{"hidden; give it by name to read it"}, links_{"a link"},
      special_{"not a regular file"}, others_{"no text"};
};

}  // namespace

FolderTexts texts_below(const std::vector<std::string>& folders) {
  FolderTexts found;
  FolderWalk walk(found);
  for (const auto& folder : folders) walk.add(folder);
  walk.finish();
  if (found.paths.empty())
    core::bad_data("{}: has no text{}{}", fmt::join(folders, ", "), found.notes.empty() ? "" : "; ",
        fmt::join(found.notes, "; "));
  return found;
}

}  // namespace text
