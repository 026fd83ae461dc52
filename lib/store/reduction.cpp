#include "store/reduction.h"

#include "core/units.h"
#include "store/exact_search.h"

namespace store {
namespace {

constexpr std::uint64_t kRowsTogether = 4096;  // rows projected, searched or copied at once
constexpr std::uint64_t kMergeNeighbours = 8;  // default of --prune merge
constexpr std::uint64_t kMostCount = 65'535;   // limit of dimensions and neighbours

// Parses the number of "FORM:number".
std::uint64_t count_behind(
    std::string_view form, const std::string& text, const char* flag, const char* others) {
  const auto count =
      core::read_number<std::uint64_t>(text.substr(std::min(form.size(), text.size())));
  if (!text.starts_with(form) || !count || *count < 1 || *count > kMostCount)
    core::bad_usage("{}: '{}' is neither {}", flag, text, others);
  return *count;
}

void project(
    const std::string& folder, std::uint64_t to, Manifest& m, const ProgressCallback& watch) {
  const NpyArray stored(folder + "/" + m.keys_file, "<f2", m.rows, m.width, true);
  const NpyArray values(folder + "/" + m.values_file, "<i4", m.rows, 1, false);
  const auto keys = stored.values<Half>();
  report(watch, "finding principal components", 0, m.rows);
  const auto projection = Projection::learn(keys, m.width, to, m.metric);
  m.model_width = m.width, m.width = to;
  ++m.generation;
  m.keys_file = file_name(m, "keys", "npy"), m.projection_file = "projection.npy";
  m.projection_hash = write_projection(folder + "/" + m.projection_file, projection).hex();
  m.digest = {};
  NpyWriter writer(folder + "/" + m.keys_file, "<f2", 0, to, true);
  std::vector<float> floats;
  std::vector<Half> halves;
  for (std::uint64_t begin = 0; begin < m.rows; begin += kRowsTogether) {
    report(watch, "projecting", begin, m.rows);
    const std::uint64_t n = std::min(kRowsTogether, m.rows - begin);
    floats.resize(n * m.model_width);
    to_float(&keys[begin * m.model_width], floats);
    const auto projected = projection.apply(floats);
    if (std::ranges::any_of(projected, [](float x) { return std::abs(x) > kMostHalf; }))
      core::bad_data(
          "{}: projected keys are beyond the range of float16; rebuild the store with --key-scale "
          "{}",
          folder, m.key_scale / 4);
    halves.resize(projected.size());
    to_half(projected.data(), halves);
    for (std::uint64_t i = 0; i < n; ++i)
      m.digest.append(row_digest({&halves[i * to], to}, values.values<std::int32_t>()[begin + i]));
    writer.write(std::span<const Half>(halves));
  }
  writer.commit();
}

// Keeps the rows that represent entries, with their weights and places.
void keep(const std::string& folder, const std::vector<std::int32_t>& weights, Manifest& m,
    std::vector<std::int64_t>& first_rows) {
  const NpyArray stored(folder + "/" + m.keys_file, "<f2", m.rows, m.width, true);
  const NpyArray values(folder + "/" + m.values_file, "<i4", m.rows, 1, false);
  NpyArray places;
  if (!m.whole()) places = NpyArray(folder + "/" + m.places_file, "<i8", m.rows, 1, false);
  ++m.generation;
  NpyWriter keys_out(folder + "/" + file_name(m, "keys", "npy"), "<f2", 0, m.width, true),
      values_out(folder + "/" + file_name(m, "values", "npy"), "<i4", 0, 1, false),
      places_out(folder + "/" + file_name(m, "places", "npy"), "<i8", 0, 1, false),
      weights_out(folder + "/" + file_name(m, "weights", "npy"), "<i4", 0, 1, false);
  core::Hasher places_hash, weights_hash;
  m.digest = {};
  std::vector<std::int64_t> kept_before(weights.size() + 1);
  for (std::size_t row = 0; row < weights.size(); ++row) {
    kept_before[row + 1] = kept_before[row] + (weights[row] > 0 ? 1 : 0);
    if (weights[row] == 0) continue;
    const auto key = stored.values<Half>().subspan(row * m.width, m.width);
    const auto label = values.values<std::int32_t>().subspan(row, 1);
    const std::int64_t place =
        m.whole() ? static_cast<std::int64_t>(row) : places.values<std::int64_t>()[row];
    m.digest.append(row_digest(key, label[0]));
    keys_out.write(key), values_out.write(label);
    places_out.write(std::span(&place, 1)), weights_out.write(std::span(&weights[row], 1));
    places_hash.update(std::as_bytes(std::span(&place, 1)));
    weights_hash.update(std::as_bytes(std::span(&weights[row], 1)));
  }
  for (auto* writer : {&keys_out, &values_out, &places_out, &weights_out}) writer->commit();
  for (std::int64_t& row : first_rows) row = kept_before[static_cast<std::size_t>(row)];
  m.keys_file = file_name(m, "keys", "npy"), m.values_file = file_name(m, "values", "npy");
  m.places_file = file_name(m, "places", "npy"), m.weights_file = file_name(m, "weights", "npy");
  m.places_hash = places_hash.digest().hex(), m.weights_hash = weights_hash.digest().hex();
  m.rows = m.sources.back().rows = static_cast<std::uint64_t>(kept_before.back());
}

// Finds the nearest keys of some rows, including the rows themselves.
class Nearest {
 public:
  Nearest(std::span<const Half> keys, std::uint64_t width, const ProgressCallback& watch)
      : exact_(keys, static_cast<std::int64_t>(width), Metric::l2) {
    const auto factory = default_index(keys.size() / width, width);
    if (factory == "exact") return;
    index_ = train_index(factory, keys, width, Metric::l2, watch);
    add_rows(*index_, keys, width, 0, watch);
  }
  void search(std::span<const float> queries, std::int64_t k, std::span<std::int64_t> ids,
      std::span<float> scores) const {
    if (index_) index_->search(queries, k, kRecallProbes, ids, scores);
    else exact_.search(queries, k, 0, ids, scores);
  }

 private:
  ExactSearch exact_;
  std::unique_ptr<Index> index_;
};

// Lets a remaining row absorb its eligible neighbours; the list may include the row itself.
void take_up(std::size_t row, std::span<const std::int64_t> nearest,
    std::span<const std::int32_t> labels, std::vector<std::int32_t>& weights) {
  if (weights[row] == 0) return;
  std::size_t others = 0;
  for (const std::int64_t id : nearest) {
    const auto other = static_cast<std::size_t>(id);
    if (id < 0 || other == row) continue;
    if (++others == nearest.size()) return;  // the row itself was not among them
    if (weights[other] != 1 || labels[other] != labels[row]) continue;
    ++weights[row];
    weights[other] = 0;
  }
}

}  // namespace

Reduction parse_reduction(const std::string& keys, const std::string& prune) {
  Reduction how;
  how.drop_keys = keys == "none";
  if (keys != "all" && !how.drop_keys)
    how.pca = count_behind("pca:", keys, "--keys", "all, none nor pca:D, as pca:64");
  if (prune == "merge") how.merge_neighbours = kMergeNeighbours;
  else if (prune != "none")
    how.merge_neighbours = count_behind("merge:", prune, "--prune", "none, merge nor merge:K");
  return how;
}

std::vector<std::int32_t> merged_weights(std::span<const Half> keys, std::uint64_t width,
    std::span<const std::int32_t> labels, std::uint64_t neighbours, const ProgressCallback& watch) {
  const Nearest nearest(keys, width, watch);
  const std::size_t rows = labels.size(), k = neighbours + 1;  // including the row itself
  std::vector<std::int32_t> weights(rows, 1);
  std::vector<float> queries, scores(kRowsTogether * k);
  std::vector<std::int64_t> ids(kRowsTogether * k);
  for (std::size_t begin = 0; begin < rows; begin += kRowsTogether) {
    report(watch, "merging entries", begin, rows);
    const std::size_t n = std::min<std::size_t>(kRowsTogether, rows - begin);
    queries.resize(n * width);
    to_float(&keys[begin * width], queries);
    nearest.search(queries, static_cast<std::int64_t>(k), std::span(ids).first(n * k),
        std::span(scores).first(n * k));
    for (std::size_t i = 0; i < n; ++i)
      take_up(begin + i, std::span(ids).subspan(i * k, k), labels, weights);
  }
  return weights;
}

void reduce(const std::string& folder, const Reduction& reduction, Manifest& manifest,
    std::vector<std::int64_t>& first_rows, const ProgressCallback& watch) {
  if (reduction.pca > 0) project(folder, reduction.pca, manifest, watch);
  if (reduction.merge_neighbours == 0) return;
  std::vector<std::int32_t> weights;
  {
    const NpyArray keys(
        folder + "/" + manifest.keys_file, "<f2", manifest.rows, manifest.width, true);
    const NpyArray values(folder + "/" + manifest.values_file, "<i4", manifest.rows, 1, false);
    weights = merged_weights(keys.values<Half>(), manifest.width, values.values<std::int32_t>(),
        reduction.merge_neighbours, watch);
  }
  keep(folder, weights, manifest, first_rows);
  manifest.merge_neighbours = reduction.merge_neighbours;
}

}  // namespace store
