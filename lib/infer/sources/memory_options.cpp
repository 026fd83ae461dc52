#include "infer/sources/memory_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/error.h"

namespace infer {
namespace {

// "FOLDER:0.3", "FOLDER:auto" or "FOLDER:gate". A folder's name may contain a colon too.
struct WithText {
  std::string folder;
  std::optional<double> lambda;
  bool gated = false;
};

WithText read_with(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return {text, {}};
  const std::string folder = text.substr(0, colon), share = text.substr(colon + 1);
  if (share == "auto") return {folder, {}};
  if (share == Share::kGate) return {folder, {}, true};
  const auto lambda = number_in(share);
  if (!lambda) return {text, {}};
  if (!(*lambda >= 0 && *lambda < 1))
    core::fail(core::Code::usage, "--ensemble {}: takes a weight of at least 0 and below 1", text);
  return {folder, lambda};
}

}  // namespace

bool WithOptions::open() const {
  return std::all_of(models.begin(), models.end(), [](const auto& text) {
    const WithText read = read_with(text);
    return !read.lambda && !read.gated;
  });
}

std::vector<WithShare> WithOptions::shares() const {
  std::vector<WithShare> shares;
  double rest = 1, open = 1;
  int gates = 0;
  for (const auto& text : models) {
    const WithText read = read_with(text);
    if (read.folder.empty())
      core::fail(core::Code::usage, "--ensemble {}: the folder is missing", text);
    shares.push_back({read.folder, read.lambda.value_or(-1), read.gated});
    gates += read.gated;
    rest -= read.lambda.value_or(0);
    open += read.lambda ? 0 : 1;
  }
  if (rest <= 0) core::fail(core::Code::usage, "--ensemble: the weights must sum to less than 1");
  if (gates > 1)
    core::fail(core::Code::usage,
               "--ensemble: only one model may have a gate; give the others weights");
  for (auto& share : shares)
    if (share.lambda < 0) share.lambda = rest / open;
  if (any() && temperatures.size() > 1 && temperatures.size() != models.size())
    core::fail(core::Code::usage, "--ensemble-temperature: takes 1 or {} temperatures, not {}",
               models.size(), temperatures.size());
  for (std::size_t i = 0; i < shares.size() && !temperatures.empty(); ++i)
    shares[i].temperature = temperatures[temperatures.size() == 1 ? 0 : i];
  return shares;
}

std::vector<std::string> with_texts(const std::vector<WithShare>& shares) {
  std::vector<std::string> texts;
  for (const auto& share : shares)
    texts.push_back(share.gated ? fmt::format("{}:{}", share.folder, Share::kGate)
                                : fmt::format("{}:{}", share.folder, share.lambda));
  return texts;
}

std::int64_t ngram_bucket(std::uint64_t length, bool one) {
  const auto* const at =
      std::find_if(std::begin(kNgramLengths), std::end(kNgramLengths),
                   [&](std::int64_t most) { return length <= static_cast<std::uint64_t>(most); });
  return (at - std::begin(kNgramLengths)) + (one ? kNgramLengthBuckets : 0);
}

std::vector<double> NgramOptions::shares(double otherwise) const {
  if (lambda.gated()) return std::vector<double>(kNgramBuckets, 0);
  auto shares = lambda.values("--ngrams-lambda", otherwise);
  if (shares.size() == 1) shares.resize(kNgramBuckets, shares[0]);
  if (shares.size() != static_cast<std::size_t>(kNgramBuckets))
    core::fail(core::Code::usage, "--ngrams-lambda: takes 1 or {} weights, not {}", kNgramBuckets,
               shares.size());
  return shares;
}

}  // namespace infer
