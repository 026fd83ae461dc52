#include "store/targets.h"

namespace store {
namespace {

constexpr std::size_t kQueries = 1024;   // queries searched together
constexpr double kShareRounding = 1e-4;  // of a sum of probabilities in float32

// Returns the first row and first document of a text in the store.
struct Stretch {
  std::uint64_t row = 0, document = 0;
  const Source* source = nullptr;
};

Stretch stretch_of(const Datastore& store, const shard::Dataset& data) {
  const std::string text = data.fingerprint().hex();
  const Manifest& manifest = store.manifest();
  store.expect_keys("build-targets");
  if (manifest.reduced())
    core::bad_usage("{}: does not have every original key, which targets need", store.name());
  if (!manifest.removed.empty())
    core::bad_data(
        "{}: documents were removed from it; build a store of the whole text", store.name());
  Stretch stretch;
  for (const Source& source : manifest.sources) {
    if (source.data == text && !source.part) {
      stretch.source = &source;
      return stretch;
    }
    stretch.row += source.rows;
    stretch.document += source.documents;
  }
  core::bad_data("{}: does not contain {}, whose fingerprint is {}; build a store of this text",
      store.name(), data.name(), text);
}

double root_of(const Datastore& store) { return std::sqrt(static_cast<double>(store.width())); }

}  // namespace

void TargetOptions::fields(core::FieldList& f) {
  f("k", k, "nearest neighbours per token, without its own entry").between(1, 65535);
  f("nprobe", nprobe, "inverted lists probed per query (nprobe)").between(1, 1e6);
  f("rescore", rescore, "recompute the scores of the neighbours from the stored keys");
  f("datastore-temperature", temperature, "temperature of the scores; auto: sqrt(width of a key)")
      .auto_or_above(0, 1e6);
  f("top-k", keep, "most probable target tokens kept per position").between(1, 65536);
}

std::vector<WordShare> word_shares(std::span<const std::int64_t> rows,
    std::span<const float> scores, std::span<const std::int32_t> labels, std::int64_t own,
    std::int64_t k, double temperature, std::int64_t keep) {
  std::map<std::int32_t, double> mass;
  double all = 0, best = 0;
  std::int64_t taken = 0;
  for (std::size_t i = 0; i < rows.size() && taken < k; ++i) {
    if (rows[i] < 0 || rows[i] == own) continue;
    if (taken++ == 0) best = static_cast<double>(scores[i]);
    const double one = std::exp((static_cast<double>(scores[i]) - best) / temperature);
    mass[labels[i]] += one;
    all += one;
  }
  std::vector<WordShare> shares;
  for (const auto& [word, one] : mass)
    shares.push_back({static_cast<std::uint32_t>(word), static_cast<float>(one / all)});
  std::ranges::stable_sort(shares, [](const auto& a, const auto& b) { return a.share > b.share; });
  shares.resize(std::min(shares.size(), static_cast<std::size_t>(keep)));
  return shares;
}

std::vector<std::int64_t> rows_of(const Datastore& store, const shard::Dataset& data) {
  const auto [first_row, first_document, source] = stretch_of(store, data);
  const auto& ends = data.documents().end;
  const auto damaged = [&] {
    core::bad_data("{}: its rows do not match the tokens of {}", store.name(), data.name());
  };
  if (source->documents != ends.size() || source->rows > data.size()) damaged();
  std::vector<std::int64_t> rows(data.size(), -1);
  std::vector<std::uint32_t> tokens;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); begin = ends[i++]) {
    const std::size_t document = first_document + i;
    const std::uint64_t from =
        i == 0 ? first_row : static_cast<std::uint64_t>(store.documents()[document]);
    const std::uint64_t to = i + 1 < ends.size()
                                 ? static_cast<std::uint64_t>(store.documents()[document + 1])
                                 : first_row + source->rows;
    // The first token of a stream may have no context and then no entry.
    if (to < from || to - from > ends[i] - begin || ends[i] - begin - (to - from) > 1) damaged();
    tokens.resize(to - from);
    data.read(ends[i] - tokens.size(), std::span(tokens));
    for (std::uint64_t n = 0; n < tokens.size(); ++n) {
      if (static_cast<std::uint32_t>(store.labels()[from + n]) != tokens[n]) damaged();
      rows[ends[i] - tokens.size() + n] = static_cast<std::int64_t>(from + n);
    }
  }
  return rows;
}

bool is_distribution(
    std::span<const float> words, std::span<const float> shares, std::uint64_t vocabulary) {
  double sum = 0;
  std::vector<float> named;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const float word = words[i], share = shares[i];
    if (!(share >= 0 && share <= 1) ||
        !(word >= 0 && static_cast<double>(word) < static_cast<double>(vocabulary)) ||
        word != std::floor(word))
      return false;
    sum += static_cast<double>(share);
    if (share > 0) named.push_back(word);
  }
  std::ranges::sort(named);
  return sum <= 1 + kShareRounding && std::ranges::adjacent_find(named) == named.end();
}

shard::Header targets_header(const TargetOptions& options) {
  shard::Header header;
  header.kind = shard::Kind::vectors;
  header.dtype = shard::Dtype::f32;
  header.width = static_cast<std::uint32_t>(2 * options.keep);
  header.vocabulary = 0;
  return header;
}

core::OrderedJson targets_provenance(
    const Datastore& store, const shard::Dataset& data, const TargetOptions& options) {
  core::OrderedJson made{{"k", options.k}, {"nprobe", options.nprobe}, {"rescore", options.rescore},
      {"datastore-temperature", options.temperature > 0 ? options.temperature : root_of(store)},
      {"top_k", options.keep}};
  return shard::provenance_entry(kTargetsProgram, std::move(made),
      {data.fingerprint(), core::Digest::from_hex(store.fingerprint())});
}

void write_targets(const Datastore& store, const shard::Dataset& data, const TargetOptions& options,
    shard::Writer& out, const std::function<void(std::uint64_t)>& progress) {
  if (store.manifest().vocabulary > 1 << 24)
    core::bad_data("{}: the vocabulary is too large for targets", store.name());
  const auto rows = rows_of(store, data);
  const auto width = static_cast<std::size_t>(store.width());
  const auto keep = static_cast<std::size_t>(options.keep);
  const double temperature = options.temperature > 0 ? options.temperature : root_of(store);
  SearchOptions search{options.k + 1, options.nprobe};
  search.rescore = options.rescore;
  std::vector<float> queries, vectors;
  for (std::size_t begin = 0; begin < rows.size(); begin += kQueries) {
    const std::size_t end = std::min(begin + kQueries, rows.size());
    queries.assign((end - begin) * width, 0);
    for (std::size_t i = begin; i < end; ++i)
      if (rows[i] >= 0)
        to_float(store.keys().data() + static_cast<std::size_t>(rows[i]) * width,
            std::span(queries).subspan((i - begin) * width, width));
    const Hits hits = store.search(queries, search);
    vectors.assign((end - begin) * 2 * keep, 0);
    for (std::size_t i = begin; i < end; ++i) {
      if (rows[i] < 0) continue;
      const auto k = static_cast<std::size_t>(hits.k), at = (i - begin) * k;
      const auto shares =
          word_shares(std::span(hits.ids).subspan(at, k), std::span(hits.scores).subspan(at, k),
              std::span(hits.labels).subspan(at, k), rows[i], options.k, temperature, options.keep);
      float* const words = vectors.data() + (i - begin) * 2 * keep;
      for (std::size_t j = 0; j < shares.size(); ++j) {
        words[j] = static_cast<float>(shares[j].word);
        words[keep + j] = shares[j].share;
      }
    }
    out.write(std::span<const float>(vectors));
    if (progress) progress(end);
  }
}

}  // namespace store
