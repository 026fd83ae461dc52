#include "infer/sources/ensemble.h"

namespace infer {
namespace {

constexpr double kOpenWeight = -1;

// Reads "FOLDER:0.3", "FOLDER:auto" or "FOLDER:gate". A folder's name may contain a colon too.
EnsembleWeight read_ensemble(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return {text, kOpenWeight};
  const std::string folder = text.substr(0, colon), share = text.substr(colon + 1);
  if (share == "auto") return {folder, kOpenWeight};
  if (share == MemoryWeight::kGate) return {folder, kOpenWeight, true};
  const auto lambda = core::read_number<double>(share);
  if (!lambda) return {text, kOpenWeight};
  if (!(*lambda >= 0 && *lambda < 1))
    core::bad_usage("--ensemble {}: takes a weight of at least 0 and below 1", text);
  return {folder, *lambda};
}

}  // namespace

bool EnsembleOptions::open() const {
  return std::all_of(models.begin(), models.end(), [](const auto& text) {
    const EnsembleWeight read = read_ensemble(text);
    return read.lambda == kOpenWeight && !read.gated;
  });
}

std::vector<EnsembleWeight> EnsembleOptions::shares() const {
  std::vector<EnsembleWeight> shares;
  double rest = 1, open = 1;
  int gates = 0;
  for (const auto& text : models) {
    const EnsembleWeight& read = shares.emplace_back(read_ensemble(text));
    if (read.folder.empty()) core::bad_usage("--ensemble {}: the folder is missing", text);
    gates += read.gated;
    rest -= std::max(read.lambda, 0.0);
    open += read.lambda == kOpenWeight ? 1 : 0;
  }
  if (rest <= 0) core::bad_usage("--ensemble: the weights must sum to less than 1");
  if (gates > 1)
    core::bad_usage("--ensemble: only one model may have a gate; give the others weights");
  for (auto& share : shares)
    if (share.lambda == kOpenWeight) share.lambda = rest / open;
  if (any() && temperatures.size() > 1 && temperatures.size() != models.size())
    core::bad_usage("--ensemble-temperature: takes 1 or {} temperatures, not {}", models.size(),
        temperatures.size());
  for (std::size_t i = 0; i < shares.size() && !temperatures.empty(); ++i)
    shares[i].temperature = temperatures[temperatures.size() == 1 ? 0 : i];
  return shares;
}

std::vector<std::string> ensemble_texts(const std::vector<EnsembleWeight>& shares) {
  return core::mapped(shares, [](const auto& share) {
    return share.gated ? fmt::format("{}:{}", share.folder, MemoryWeight::kGate)
                       : fmt::format("{}:{}", share.folder, share.lambda);
  });
}

std::vector<double> EnsemblePlan::temperatures() const {
  auto all = core::mapped(shares, &EnsembleWeight::temperature);
  return std::count(all.begin(), all.end(), 1) == std::ssize(all) ? std::vector<double>{} : all;
}

std::int64_t EnsemblePlan::gated() const {
  const auto found = std::ranges::find_if(shares, &EnsembleWeight::gated);
  return found == shares.end() ? -1 : found - shares.begin();
}

}  // namespace infer
