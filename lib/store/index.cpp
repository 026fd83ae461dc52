#include "store/index.h"

namespace store {

std::vector<std::string> index_choices(std::uint64_t rows, std::uint64_t width, bool keeps_keys) {
#ifdef TESSERA_FAISS
  // Up to this size an exact search costs at most a few hundred microseconds per query, or the
  // training of lists needs more rows than exist.
  constexpr std::uint64_t kFew = 65'536;
  // Codes are in memory: those of one byte per coordinate up to this size.
  constexpr std::uint64_t kMostBytes = 4ULL << 30U;
  if (rows <= kFew) return {keeps_keys ? "exact" : "SQ8"};
  std::vector<std::string> choices;
  // The number of lists is the smallest power of 2 above sqrt(N).
  std::uint64_t lists = 256;
  while (lists * lists * 4 <= rows * 4 && lists < 65'536) lists *= 2;
  const bool bytes = width == 0 || rows <= kMostBytes / width;
  // Codes of 4 bits for 4 coordinates if the width allows.
  for (std::uint64_t part = 4; !bytes && part <= 8 && choices.empty(); part += 2)
    if (width % part == 0 && width / part % 2 == 0)
      choices.push_back(fmt::format("IVF{},PQ{}x4fs", lists, width / part));
  choices.push_back(fmt::format("IVF{},SQ{}", lists, bytes ? 8 : 4));
  if (keeps_keys) choices.emplace_back("exact");
  return choices;
#else
  (void)rows, (void)width, (void)keeps_keys;
  return {"exact"};
#endif
}

std::string default_index(std::uint64_t rows, std::uint64_t width, bool keeps_keys) {
  return index_choices(rows, width, keeps_keys).front();
}

}  // namespace store

#ifdef TESSERA_FAISS

#include <faiss/AutoTune.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQFastScan.h>
#include <faiss/IndexPQFastScan.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>
#include <faiss/index_io.h>

#include <mutex>
#include <typeinfo>

#include "core/io.h"
#include "store/index_bytes.h"

namespace store {
namespace {

using core::Code;
using core::fail;

faiss::MetricType faiss_metric(Metric metric) {
  return metric == Metric::ip ? faiss::METRIC_INNER_PRODUCT : faiss::METRIC_L2;
}

// Returns the last line of a FAISS message; earlier lines name source files.
std::string short_text(const std::exception& error) {
  std::string text = error.what();
  if (const auto at = text.find("failed: "); at != std::string::npos) text = text.substr(at + 8);
  if (const auto at = text.rfind("Error: "); at != std::string::npos) text = text.substr(at + 7);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

struct BytesReader : faiss::IOReader {
  explicit BytesReader(std::span<const std::byte> all) : bytes(all) {}
  std::size_t operator()(void* to, std::size_t size, std::size_t n) override {
    if (size == 0 || n == 0) return n;
    n = std::min(n, bytes.size() / size);
    std::memcpy(to, bytes.data(), n * size);
    bytes = bytes.subspan(n * size);
    return n;
  }
  std::span<const std::byte> bytes;
};

struct HashingWriter : faiss::IOWriter {
  explicit HashingWriter(const std::string& path) : out(path) {}
  std::size_t operator()(const void* from, std::size_t size, std::size_t n) override {
    const std::span bytes(static_cast<const std::byte*>(from), size * n);
    out.write(bytes);
    hash.update(bytes);
    return n;
  }
  core::Output out;
  core::Hasher hash;
};

// Silences FAISS's warning about fewer than 39 rows per centroid: recall shows the index's quality.
// Leaves out polysemous training, which orders the centroids of a product quantizer for a filter by
// Hamming distance: no search here uses the filter, and the ordering takes nine tenths of training.
void set_training(faiss::Index* index) {
  const auto product = [](auto* codes) {
    if (codes == nullptr) return;
    codes->pq.cp.min_points_per_centroid = 1;
    if constexpr (requires { codes->do_polysemous_training; })
      codes->do_polysemous_training = false;
  };
  if (auto* graph = dynamic_cast<faiss::IndexHNSW*>(index)) index = graph->storage;
  if (auto* ivf = dynamic_cast<faiss::IndexIVF*>(index)) ivf->cp.min_points_per_centroid = 1;
  product(dynamic_cast<faiss::IndexIVFPQ*>(index));
  product(dynamic_cast<faiss::IndexPQ*>(index));
  product(dynamic_cast<faiss::IndexIVFPQFastScan*>(index));
  product(dynamic_cast<faiss::IndexPQFastScan*>(index));
}

// Returns the index below transformations of the vectors.
faiss::Index* below_transforms(faiss::Index* index) {
  while (auto* transform = dynamic_cast<faiss::IndexPreTransform*>(index)) index = transform->index;
  return index;
}

// Returns the index below a refinement too.
faiss::Index* inner(faiss::Index* index) {
  index = below_transforms(index);
  if (auto* refined = dynamic_cast<faiss::IndexRefine*>(index))
    return below_transforms(refined->base_index);
  return index;
}

// Makes the quantizer that an OPQ rotation is trained with, without FAISS's warning: otherwise it
// is given for each of 50 rounds. Null without a rotation.
std::unique_ptr<faiss::ProductQuantizer> quiet_quantizer(faiss::Index* index) {
  const auto* transforms = dynamic_cast<faiss::IndexPreTransform*>(index);
  if (transforms == nullptr) return nullptr;
  for (faiss::VectorTransform* transform : transforms->chain) {
    auto* rotation = dynamic_cast<faiss::OPQMatrix*>(transform);
    if (rotation == nullptr) continue;
    auto quantizer = std::make_unique<faiss::ProductQuantizer>(rotation->d_out, rotation->M, 8);
    quantizer->cp.min_points_per_centroid = 1;
    rotation->pq = quantizer.get();
    return quantizer;
  }
  return nullptr;
}

// Refuses a type that check_index_bytes() does not support, because it could not be read back.
void expect_checkable(const faiss::Index& index, const std::string& factory) {
  faiss::VectorIOWriter writer;
  try {
    faiss::write_index(&index, &writer);
    check_index_bytes(std::as_bytes(std::span(writer.data)), factory, 0);
  } catch (const std::exception&) {
    core::bad_usage(
        "--index {}: not supported, since such an index cannot be validated when it is opened; "
        "use Flat, PQ, SQ or HNSW, or IVF with them",
        factory);
  }
}

// For k above 20 FAISS gathers a 4-bit index's hits in reservoirs. These abort the program by an
// assertion if more rows are equally near than fit (1.7.3: partitioning.cpp, n_eq == 0). Heaps
// accept any rows: 12 selects them for blocks of 32 codes, 10 and 14 for other sizes.
void keep_in_heaps(faiss::Index* index) {
  if (auto* lists = dynamic_cast<faiss::IndexIVFFastScan*>(index))
    lists->implem = lists->bbs == 32 ? 12 : 10;
  if (auto* codes = dynamic_cast<faiss::IndexFastScan*>(index))
    codes->implem = codes->bbs == 32 ? 12 : 14;
}

// Compares the type's name, because FAISS's graph header needs OpenMP's, which clang may lack.
bool is_graph(const faiss::Index& index) {
  return std::strstr(typeid(index).name(), "HNSW") != nullptr;
}

// Gives what a search sets in an index the values that it is made with, so that searches change no
// byte of its file.
void forget_searches(faiss::Index* index) {
  faiss::Index* const searched = inner(index);
  if (auto* ivf = dynamic_cast<faiss::IndexIVF*>(searched)) ivf->nprobe = 1;
  if (auto* lists = dynamic_cast<faiss::IndexIVFFastScan*>(searched)) lists->implem = 0;
  if (auto* codes = dynamic_cast<faiss::IndexFastScan*>(searched)) codes->implem = 0;
  if (is_graph(*searched)) faiss::ParameterSpace().set_index_parameter(index, "efSearch", 16);
}

// Returns true for types whose inverted lists hold all data of a row.
bool lists_are_all(const faiss::IndexIVF& index) {
  const auto& type = typeid(index);
  return (type == typeid(faiss::IndexIVFFlat) || type == typeid(faiss::IndexIVFPQ) ||
             type == typeid(faiss::IndexIVFScalarQuantizer)) &&
         dynamic_cast<const faiss::ArrayInvertedLists*>(index.invlists) != nullptr;
}

// An index of FAISS.
class FaissIndex : public Index {
 public:
  explicit FaissIndex(std::unique_ptr<faiss::Index> index,
      std::unique_ptr<faiss::ProductQuantizer> of_rotation = nullptr)
      : of_rotation_(std::move(of_rotation)), index_(std::move(index)) {}

  std::uint64_t training_rows() const override {
    // FAISS's k-means uses at most 256 rows per centroid, and recommends at least 39.
    std::uint64_t rows = 65'536;
    if (const auto* ivf = dynamic_cast<faiss::IndexIVF*>(inner(index_.get())))
      rows = std::max<std::uint64_t>(rows, ivf->nlist * 64);
    return rows;
  }

  std::uint64_t size() const override { return static_cast<std::uint64_t>(index_->ntotal); }
  void reset() override { index_->reset(); }

  void train(std::span<const float> keys) override {
    auto& index = *index_;
    try {
      index.train(static_cast<std::int64_t>(keys.size()) / index.d, keys.data());
    } catch (const std::exception& error) {
      core::bad_data(
          "training the index failed: {}; use a smaller --index, or exact", short_text(error));
    }
  }

  void add(std::span<const float> keys) override {
    auto& index = *index_;
    try {
      index.add(static_cast<std::int64_t>(keys.size()) / index.d, keys.data());
    } catch (const faiss::FaissException& error) {
      fail(Code::unavailable, "adding to the index failed: {}", short_text(error));
    }
  }

  bool remove(const std::vector<bool>& gone) override {
    auto* ivf = dynamic_cast<faiss::IndexIVF*>(below_transforms(index_.get()));
    if (ivf == nullptr || !lists_are_all(*ivf)) return false;
    std::vector<std::int64_t> number(gone.size());
    std::int64_t left = 0;
    for (std::size_t i = 0; i < gone.size(); ++i) number[i] = gone[i] ? -1 : left++;
    auto& lists = *dynamic_cast<faiss::ArrayInvertedLists*>(ivf->invlists);
    const std::size_t size = lists.code_size;
    for (std::size_t list = 0; list < lists.nlist; ++list) {
      auto& ids = lists.ids[list];
      auto& codes = lists.codes[list];
      std::size_t kept = 0;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::int64_t id = number.at(static_cast<std::size_t>(ids[i]));
        if (id < 0) continue;
        std::memmove(codes.data() + kept * size, codes.data() + i * size, size);
        ids[kept++] = id;
      }
      lists.resize(list, kept);
    }
    for (faiss::Index* index = index_.get(); index != nullptr;) {
      index->ntotal = left;
      auto* transform = dynamic_cast<faiss::IndexPreTransform*>(index);
      index = transform == nullptr ? nullptr : transform->index;
    }
    return true;
  }

  void search(std::span<const float> queries, std::int64_t k, std::int64_t nprobe,
      std::span<std::int64_t> ids, std::span<float> scores) const override {
    const std::lock_guard lock(searching_);  // nprobe is a member of the index, not an argument
    faiss::Index& index = *index_;
    faiss::Index* searched = inner(&index);
    if (auto* ivf = dynamic_cast<faiss::IndexIVF*>(searched))
      ivf->nprobe = std::min<std::size_t>(static_cast<std::size_t>(nprobe), ivf->nlist);
    keep_in_heaps(searched);
    try {
      if (is_graph(*searched))
        faiss::ParameterSpace().set_index_parameter(
            &index, "efSearch", static_cast<double>(std::max(k, nprobe)));
      index.search(static_cast<std::int64_t>(queries.size()) / index.d, queries.data(), k,
          scores.data(), ids.data());
    } catch (const faiss::FaissException& error) {
      fail(Code::unavailable, "searching the index failed: {}", short_text(error));
    }
    const float sign = index.metric_type == faiss::METRIC_L2 ? -1.0F : 1.0F;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= index.ntotal) core::bad_data("a damaged index: row {} of {}", ids[i], size());
      if (std::isnan(scores[i])) ids[i] = -1;  // NaN from corrupt codes or codebooks
      scores[i] = ids[i] < 0 ? -std::numeric_limits<float>::infinity() : sign * scores[i];
    }
  }

  core::Digest write(const std::string& path) const override {
    const std::lock_guard lock(searching_);
    HashingWriter writer(path);
    try {
      forget_searches(index_.get());
      faiss::write_index(index_.get(), &writer);
    } catch (const faiss::FaissException& error) {
      fail(Code::io, "{}: {}", path, short_text(error));
    }
    writer.out.commit();
    return writer.hash.digest();
  }

 private:
  // What OPQ trains with; outlives the index.
  std::unique_ptr<faiss::ProductQuantizer> of_rotation_;
  std::unique_ptr<faiss::Index> index_;
  mutable std::mutex searching_;
};

}  // namespace

std::unique_ptr<Index> Index::make(const std::string& factory, std::uint64_t width, Metric metric) {
  std::unique_ptr<faiss::Index> index;
  try {
    index.reset(
        faiss::index_factory(static_cast<int>(width), factory.c_str(), faiss_metric(metric)));
  } catch (const std::exception& error) {
    const auto text = short_text(error);
    if (text.find("could not parse") != text.npos)
      core::bad_usage(
          "--index {}: FAISS knows no such index; give exact, or a factory string such as "
          "IVF1024,PQ64x4fs",
          factory);
    core::bad_usage(
        "--index {}: FAISS cannot build it for keys of width {}: {}", factory, width, text);
  }
  expect_checkable(*index, factory);
  set_training(inner(index.get()));
  auto of_rotation = quiet_quantizer(index.get());
  return std::make_unique<FaissIndex>(std::move(index), std::move(of_rotation));
}

std::unique_ptr<Index> Index::parse(std::span<const std::byte> bytes, const std::string& origin,
    std::uint64_t width, Metric metric, std::uint64_t rows) {
  check_index_bytes(bytes, origin, rows);
  std::unique_ptr<faiss::Index> index;
  try {
    BytesReader reader(bytes);
    index.reset(faiss::read_index(&reader));
  } catch (const std::exception& error) {
    core::bad_data(
        "{}: this version of FAISS cannot read the index: {}", origin, short_text(error));
  }
  if (static_cast<std::uint64_t>(index->d) != width ||
      static_cast<std::uint64_t>(index->ntotal) != rows ||
      index->metric_type != faiss_metric(metric))
    core::bad_data("{}: the index has {} rows of width {}, expected {} of width {} with metric {}",
        origin, index->ntotal, index->d, rows, width, name_of(metric));
  return std::make_unique<FaissIndex>(std::move(index));
}

}  // namespace store

#else  // without FAISS: stores are exact

namespace store {
namespace {
[[noreturn]] void absent() {
  core::fail(core::Code::unavailable,
      "this build has no FAISS; use --index exact, or rebuild with -Dfaiss_ROOT=DIR");
}
}  // namespace

std::unique_ptr<Index> Index::make(const std::string&, std::uint64_t, Metric) { absent(); }
std::unique_ptr<Index> Index::parse(
    std::span<const std::byte>, const std::string&, std::uint64_t, Metric, std::uint64_t) {
  absent();
}

}  // namespace store

#endif
