#include "store/store_plan.h"

#include "store/index.h"

#ifdef TESSERA_FAISS

#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVFPQFastScan.h>
#include <faiss/IndexPQFastScan.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>
#include <faiss/index_io.h>

namespace store {
namespace {

struct CountingWriter : faiss::IOWriter {
  std::uint64_t bytes = 0;
  std::size_t operator()(const void* /*from*/, std::size_t size, std::size_t n) override {
    bytes += size * n;
    return n;
  }
};

// Counts the trained numbers of a scalar quantizer: one range for all coordinates, or one for each.
std::uint64_t ranges_of(const faiss::ScalarQuantizer& codes, std::uint64_t width) {
  using Codes = faiss::ScalarQuantizer;
  const auto is = [&](auto... types) { return ((codes.qtype == types) || ...); };
  if (is(Codes::QT_4bit, Codes::QT_6bit, Codes::QT_8bit)) return 2 * width;
  return is(Codes::QT_4bit_uniform, Codes::QT_8bit_uniform) ? 2 : 0;
}

// Counts the numbers that a transformation learns.
std::uint64_t learned_by(const faiss::VectorTransform& transform) {
  const auto in = static_cast<std::uint64_t>(transform.d_in),
             out = static_cast<std::uint64_t>(transform.d_out);
  const auto* const linear = dynamic_cast<const faiss::LinearTransform*>(&transform);
  if (linear == nullptr) return 0;
  std::uint64_t numbers = linear->A.empty() ? in * out : 0;
  if (dynamic_cast<const faiss::PCAMatrix*>(linear) != nullptr)
    numbers += in * in + 2 * in + out;  // all components, mean and eigenvalues, what is subtracted
  return numbers * sizeof(float);
}

// Returns the bytes that rows and training add to an empty, untrained index.
class Growth {
 public:
  Growth(const faiss::Index& index, std::uint64_t rows) : rows_(rows) { of(index); }
  IndexSize size;

 private:
  void add(std::uint64_t bytes) { size.least += bytes, size.most += bytes; }
  void of(const faiss::Index& index) {
    const auto width = static_cast<std::uint64_t>(index.d);
    if (const auto* t = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
      for (const auto* step : t->chain) add(learned_by(*step));
      of(*t->index);
    } else if (const auto* refined = dynamic_cast<const faiss::IndexRefine*>(&index)) {
      of(*refined->base_index);
      of(*refined->refine_index);
    } else if (const auto* ivf = dynamic_cast<const faiss::IndexIVF*>(&index)) {
      of_lists(*ivf, width);
    } else if (const auto* graph = dynamic_cast<const faiss::IndexHNSW*>(&index)) {
      of_graph(graph->hnsw);
      of(*graph->storage);
    } else if (const auto* fast = dynamic_cast<const faiss::IndexPQFastScan*>(&index)) {
      of_product(fast->pq);
      const auto block = static_cast<std::uint64_t>(fast->bbs);
      add((rows_ + block - 1) / block * block * fast->M2 / 2);
    } else if (const auto* coded = dynamic_cast<const faiss::IndexFlatCodes*>(&index)) {
      if (const auto* scalar = dynamic_cast<const faiss::IndexScalarQuantizer*>(&index))
        add(ranges_of(scalar->sq, width) * sizeof(float));
      if (const auto* product = dynamic_cast<const faiss::IndexPQ*>(&index))
        of_product(product->pq);
      add(rows_ * coded->code_size);
    } else {
      core::bad_usage("--index: the size of an index of this type cannot be estimated");
    }
  }

  void of_product(const faiss::ProductQuantizer& product) { size.centroids = product.ksub; }

  void of_lists(const faiss::IndexIVF& ivf, std::uint64_t width) {
    size.lists = ivf.nlist;
    const std::uint64_t rows = std::exchange(rows_, ivf.nlist);
    of(*ivf.quantizer);
    rows_ = rows;
    if (const auto* fast = dynamic_cast<const faiss::IndexIVFPQFastScan*>(&ivf)) {
      of_product(fast->pq);
      const auto block = static_cast<std::uint64_t>(fast->bbs), bytes = block * fast->M2 / 2;
      add(rows * sizeof(std::int64_t));
      size.least += (rows + block - 1) / block * bytes;
      size.most += (rows / block + std::min<std::uint64_t>(rows, ivf.nlist)) * bytes;
      return;
    }
    if (const auto* product = dynamic_cast<const faiss::IndexIVFPQ*>(&ivf)) of_product(product->pq);
    if (const auto* scalar = dynamic_cast<const faiss::IndexIVFScalarQuantizer*>(&ivf))
      add(ranges_of(scalar->sq, width) * sizeof(float));
    add(ivf.nlist * sizeof(std::uint64_t));  // lengths of lists
    add(rows * (ivf.code_size + sizeof(std::int64_t)));
  }

  // A row of level l has 2 M neighbours on level 0 and M on each level above. It reaches each
  // further level with probability 1 / M.
  void of_graph(const faiss::HNSW& graph) {
    const auto below = static_cast<std::uint64_t>(graph.nb_neighbors(0)),
               above = static_cast<std::uint64_t>(graph.nb_neighbors(1));
    add(rows_ * (sizeof(std::int32_t) + sizeof(std::uint64_t) + below * sizeof(std::int32_t)));
    size.most += rows_ * 4 * sizeof(std::int32_t) + 64 * above * sizeof(std::int32_t);
  }

  std::uint64_t rows_;
};

}  // namespace

IndexSize index_size(
    const std::string& factory, std::uint64_t rows, std::uint64_t width, Metric metric) {
  if (factory == "exact") return {};
  const auto checked = Index::make(factory, width, metric);  // throws for an invalid index
  const std::unique_ptr<faiss::Index> index(faiss::index_factory(static_cast<int>(width),
      factory.c_str(), metric == Metric::ip ? faiss::METRIC_INNER_PRODUCT : faiss::METRIC_L2));
  CountingWriter writer;
  faiss::write_index(index.get(), &writer);
  IndexSize size = Growth(*index, rows).size;
  size.least += writer.bytes, size.most += writer.bytes;
  size.training_rows = std::min(rows, checked->training_rows());
  return size;
}

}  // namespace store

#else

namespace store {

IndexSize index_size(
    const std::string& factory, std::uint64_t /*rows*/, std::uint64_t width, Metric metric) {
  if (factory == "exact") return {};
  Index::make(factory, width, metric);
  core::fail(core::Code::unavailable, "this build has no FAISS");
}

}  // namespace store

#endif
