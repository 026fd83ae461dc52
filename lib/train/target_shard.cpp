#include "train/target_shard.h"

#include "shard/unpacked_source.h"
#include "store/targets.h"
#include "train/batches.h"

namespace train {
namespace {

// Returns the text that the targets say they are for, or an empty string.
std::string text_of(const shard::Dataset& targets) {
  std::string text;
  for (const auto& entry : targets.provenance())
    if (entry.value("program", "") == store::kTargetsProgram && entry.contains("inputs") &&
        !entry["inputs"].empty() && entry["inputs"][0].is_string())
      text = entry["inputs"][0].get<std::string>();
  return text;
}

// Refuses a text, which Dataset would otherwise tokenize.
std::vector<std::string> no_text(const std::string& path) {
  shard::refuse_text(path, "targets of build-targets");
  return {path};
}

}  // namespace

TargetShard::TargetShard(const std::string& path, const shard::Dataset& data)
    : targets_(no_text(path)), vocabulary_(data.header().vocabulary) {
  const auto& header = targets_.header();
  shard::expect_kind(header, {shard::Kind::vectors}, targets_.name());
  const std::string text = text_of(targets_), own = data.fingerprint().hex();
  if (text.empty() || header.width % 2 != 0)
    core::bad_data("{}: not a file of targets; create it with build-targets", targets_.name());
  if (text != own)
    core::bad_data("{}: was built for a text with fingerprint {}, but {} has {}", targets_.name(),
        text, data.name(), own);
  if (targets_.size() / header.width != data.size())
    core::bad_data("{}: has targets of {} tokens, but {} has {}", targets_.name(),
        targets_.size() / header.width, data.name(), data.size());
}

nn::Teachers TargetShard::read(const std::vector<Row>& rows, std::int64_t steps) const {
  const auto width = static_cast<std::size_t>(targets_.header().width), keep = width / 2;
  const auto n = static_cast<std::int64_t>(rows.size()), words = static_cast<std::int64_t>(keep);
  nn::Teachers teachers{torch::zeros({n, steps, words}, torch::kInt64),
      torch::zeros({n, steps, words}, torch::kFloat32)};
  std::vector<float> read;
  for (std::int64_t r = 0; r < n; ++r) {
    const Row& row = rows[static_cast<std::size_t>(r)];
    read.resize(static_cast<std::size_t>(row.length) * width);
    if (read.empty()) continue;
    targets_.read((row.begin + 1) * width, std::span(read));  // input i's target is token i + 1
    auto* word = teachers.words.data_ptr<std::int64_t>() + r * steps * words;
    auto* share = teachers.shares.data_ptr<float>() + r * steps * words;
    for (std::int64_t i = 0; i < row.length; ++i, word += words, share += words) {
      const auto vector =
          std::span<const float>(read).subspan(static_cast<std::size_t>(i) * width, width);
      if (!store::is_distribution(vector.first(keep), vector.last(keep), vocabulary_))
        core::bad_data("{}: the target of token {} is not a distribution over {} tokens",
            targets_.name(), row.begin + 1 + static_cast<std::uint64_t>(i), vocabulary_);
      std::copy_n(vector.data() + keep, keep, share);
      std::transform(vector.begin(), vector.begin() + words, word,
          [](float id) { return static_cast<std::int64_t>(id); });
    }
  }
  return teachers;
}

}  // namespace train
