#include "store/store_plan.h"

#include <chrono>

#include "core/rng.h"
#include "store/builder.h"
#include "store/exact_search.h"

namespace store {
namespace {

// FAISS's training: passes over the sample for lists and codebooks, and the most rows per centroid
// of a codebook.
constexpr double kListPasses = 10, kCodePasses = 25;
constexpr std::uint64_t kRowsOfCentroid = 256;

struct Products {
  double train = 0, fill = 0, query = 0;
};

// Counts multiplications: of rows with the centres of lists and codes, and of a query with the
// visited keys. A look-up of a code counts as one.
Products products_of(const PlanOptions& options, const IndexSize& size) {
  const auto n = static_cast<double>(options.entries), d = static_cast<double>(options.width);
  const auto lists = static_cast<double>(size.lists), codes = static_cast<double>(size.centroids);
  const auto sample = static_cast<double>(size.training_rows);
  Products all;
  all.train =
      kListPasses * sample * lists * d +
      kCodePasses * codes * d * std::min(sample, codes * static_cast<double>(kRowsOfCentroid));
  all.fill = n * d * (lists + codes);
  const double seen = lists > 0 ? std::min(1.0, static_cast<double>(options.nprobe) / lists) : 1.0;
  all.query = d * lists + seen * n * d;
  return all;
}

// Measures the speed of exact search in products per second.
double measure_speed(std::uint64_t width) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kKeys = 8192, kQueries = 64;
  constexpr double kSeconds = 0.1;
  core::Rng rng(1);
  std::vector<Half> keys(kKeys * width);
  std::vector<float> queries(kQueries * width), scores(kQueries);
  std::vector<std::int64_t> ids(kQueries);
  for (Half& key : keys) key = static_cast<Half>(0x3000 + rng.below(0x0c00));  // 1/8 to 1
  for (float& number : queries) number = static_cast<float>(rng.normal());
  const ExactSearch search(keys, static_cast<std::int64_t>(width), Metric::ip);
  search.search(queries, 1, 0, ids, scores);
  const auto begin = Clock::now();
  double seconds = 0, products = 0;
  while (seconds < kSeconds) {
    search.search(queries, 1, 0, ids, scores);
    products += static_cast<double>(kKeys * kQueries * width);
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return products / seconds;
}

void expect_size(const PlanOptions& options) {
  if (options.entries < 1 || options.width < 1)
    core::bad_usage("--entries and --width are required, for example 100M and 512");
}

}  // namespace

void PlanOptions::fields(core::FieldList& f) {
  f("entries", entries, "number of entries, about one per token of the text").between(0, 1e12);
  f("width", width, "width of a key: the model's d_key").between(0, 1 << 20);
  f("documents", documents, "documents of the text").between(0, 1e12);
  f("index", index,
      "exact, or a factory string of FAISS [the first choice of "
      "build-datastore]");
  f("metric", metric, "similarity of keys: inner product, or squared L2 distance", {"ip", "l2"});
  f("nprobe", nprobe, "inverted lists probed per query (nprobe)").between(1, 1e6);
}

core::OrderedJson plan(const PlanOptions& options, double products_per_s) {
  expect_size(options);
  const auto rows = static_cast<std::uint64_t>(options.entries),
             width = static_cast<std::uint64_t>(options.width),
             documents = static_cast<std::uint64_t>(options.documents);
  const std::string index = options.index.empty() ? default_index(rows, width) : options.index;
  const IndexSize size = index_size(index, rows, width, metric_from(options.metric, "--metric"));
  const std::uint64_t keys = kNpyHeaderBytes + 2 * rows * width,
                      values = kNpyHeaderBytes + 4 * rows, first = kNpyHeaderBytes + 8 * documents;
  const std::uint64_t batch = std::min<std::uint64_t>(kBatchBytes, rows * width * sizeof(float));
  const auto products = products_of(options, size);
  return {{"entries", rows}, {"width", width}, {"index", index}, {"keys_bytes", keys},
      {"values_bytes", values}, {"documents_bytes", first}, {"index_bytes", size.least},
      {"index_bytes_most", size.most}, {"bytes", keys + values + first + size.most},
      {"training_rows", size.training_rows},
      {"build_memory", size.most + size.training_rows * width * sizeof(float) + batch},
      {"search_memory", size.most > 0 ? size.most : keys},
      {"train_s", products.train / products_per_s}, {"fill_s", products.fill / products_per_s},
      {"query_s", products.query / products_per_s}};
}

core::OrderedJson plan(const PlanOptions& options) {
  expect_size(options);
  return plan(options, measure_speed(static_cast<std::uint64_t>(options.width)));
}

}  // namespace store
