#include "text/documents/parquet_reader.h"

#include <dlfcn.h>

#include "core/build_info.h"
#include "core/path_kind.h"
#include "core/plain_text.h"

namespace text {
namespace {

constexpr std::string_view kMagic = "PAR1";

const ParquetLibrary& parquet_library() {
  static const ParquetLibrary* const library = [] {
    void* const plugin = ::dlopen("libtessera_parquet.so", RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      const char* const why = ::dlerror();
      core::fail(core::Code::unavailable,
          "--format parquet: this build has no Arrow ({}); run tools/setup parquet and make, or "
          "use a pipe: see tokenize(1)",
          why != nullptr ? why : "libtessera_parquet.so");
    }
    const auto table =
        reinterpret_cast<const ParquetLibrary* (*)()>(::dlsym(plugin, "tessera_parquet"));
    if (table == nullptr || std::strcmp(table()->build, core::build::kVersion) != 0)
      core::fail(core::Code::unavailable,
          "libtessera_parquet.so and this program are from different builds; rebuild both");
    return table();
  }();
  return *library;
}

// Some of Arrow's errors end with a newline.
[[noreturn]] void refuse(const std::string& path, std::string_view error) {
  core::bad_data("{}: {}", path, error.substr(0, error.find_last_not_of(" \n\r") + 1));
}

class ParquetReader : public DocumentReader {
 public:
  ParquetReader(const std::vector<std::string>& paths, DocumentOptions options)
      : paths_(core::input_paths(paths)), options_(std::move(options)) {
    for (const auto& path : paths_)
      if (path == "-" || (core::exists(path) && !core::is_regular_file(path)))
        core::bad_usage(
            "{}: Parquet cannot be read from a pipe; give a file", path == "-" ? "stdin" : path);
    if (options_.range.begin != 0 || options_.range.end != UINT64_MAX)
      core::bad_usage("--part: not supported for Parquet; give each part its own files");
  }

  bool next(Batch& batch) override {
    batch.parts.clear();
    batch.bytes.clear();
    batch.format = Format::lines;
    while (batch.parts.empty()) {
      if (!texts_ && !open()) return false;
      batch.source = paths_[at_];
      batch.name = options_.names.empty() ? std::string() : options_.names[at_];
      read(batch);
    }
    batch.source_bytes = finished_bytes_;
    batch.bytes.append(Batch::kPadding, '\0');
    return true;
  }
  std::vector<core::Digest> fingerprints() const override { return digests_; }
  Format format() const override { return Format::parquet; }
  const TextFindings& findings() const override { return findings_; }

 private:
  bool open() {
    if (at_ == paths_.size()) return false;
    const auto& path = paths_[at_];
    if (!is_parquet(path)) core::bad_data("{}: not a Parquet file", path);
    std::string error;
    texts_.reset(parquet_library().open(
        {path, options_.column, options_.threads, options_.rules.unpack_memory}, error));
    if (!texts_) refuse(path, error);
    row_ = 0;
    hasher_.reset();
    seen_ = {};
    return true;
  }

  void read(Batch& batch) {
    const auto& path = paths_[at_];
    std::string error;
    ends_.clear();
    read_.clear();
    if (!texts_->next(read_, ends_, error)) {
      if (!error.empty()) refuse(path, error);
      digests_.push_back(hasher_.digest());
      findings_.add(path, seen_);
      finished_bytes_ += total_bytes({path});
      texts_.reset();
      ++at_;
      return;
    }
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      ++row_;
      if (end == ParquetTexts::kNone) {
        if (options_.bad_lines == BadLines::error)
          core::bad_data("{}: row {}: has no text; --bad-lines skip leaves it out", path, row_);
        ++seen_.no_row.count;
        continue;
      }
      add(batch, std::string_view(read_).substr(begin, end - begin));
      begin = end;
    }
  }

  void add(Batch& batch, std::string_view text) {
    const std::size_t begin = batch.bytes.size();
    if (options_.rules.invalid == Invalid::error || options_.rules.invalid == Invalid::replace)
      add_checked(batch.bytes, text);
    else batch.bytes += text;
    if (options_.rules.drop_cr) {
      std::size_t size = batch.bytes.size();
      drop_cr(batch.bytes, begin, size);
      batch.bytes.resize(size);
    }
    const auto whole = std::string_view(batch.bytes).substr(begin);
    const std::uint64_t size = whole.size();
    hasher_.update(std::as_bytes(std::span(&size, 1)));
    hasher_.update(whole);
    batch.parts.push_back({begin, batch.bytes.size(), true, false, false, row_});
  }

  void add_checked(std::string& to, std::string_view text) {
    const std::size_t good = core::utf8_length(text);
    if (good == text.size()) {
      to += text;
      return;
    }
    if (options_.rules.invalid == Invalid::error)
      core::bad_data("{}: row {}: {}; --invalid replace writes U+FFFD for it", paths_[at_], row_,
          core::what_is_not_utf8(text, good));
    to += core::with_replacements(text, seen_.replaced.count);
  }

  std::vector<std::string> paths_;
  DocumentOptions options_;
  std::size_t at_ = 0;
  std::unique_ptr<ParquetTexts> texts_;  // of paths_[at_]
  std::string read_;
  std::vector<std::size_t> ends_;
  std::uint64_t row_ = 0, finished_bytes_ = 0;
  core::Hasher hasher_;
  std::vector<core::Digest> digests_;
  TextFindings findings_, seen_;
};

}  // namespace

bool is_parquet(const std::string& path) {
  if (path == "-" || (core::exists(path) && !core::is_regular_file(path))) return false;
  return core::begins_with(path, kMagic);
}

std::unique_ptr<DocumentReader> read_parquet(
    const std::vector<std::string>& paths, DocumentOptions options) {
  return std::make_unique<ParquetReader>(paths, std::move(options));
}

}  // namespace text
