#include "infer/stores/device_search.h"

#include "nn/base/cuda.h"
#include "nn/base/upload.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr std::int64_t kGroup = 16;  // rows per group
constexpr std::int64_t kHitsBytes = 1
                                    << 30;  // of the queries that keys are looked at for in one go
constexpr std::int64_t kBytesPerScore = 6;  // including those of groups
constexpr std::int64_t kBytesPerRow = 64;   // per row examined: its number and its hit
constexpr std::int64_t kLowHalf = 0xffffffff;  // the numbers of rows, so that the smaller is more
constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// A hit as an int64: the order of the score in the high half, ~row in the low half. The better of
// two hits is the larger. The order is the score's bits, with all bits except the sign inverted if
// it is negative. The same operation restores the score.
std::int32_t turned(std::int32_t bits) { return bits < 0 ? bits ^ 0x7fffffff : bits; }
std::int64_t no_hit() { return turned(std::bit_cast<std::int32_t>(kNoScore)) * (kLowHalf + 1); }
float score_of_hit(std::int64_t hit) {
  return std::bit_cast<float>(turned(static_cast<std::int32_t>(hit >> 32)));
}
std::int64_t row_of_hit(std::int64_t hit) { return kLowHalf - (hit & kLowHalf); }

// Returns the hits of scores for these rows (int64), with broadcasting.
Tensor hits_of(const Tensor& scores, const Tensor& rows) {
  const Tensor bits = (scores + 0.0F).view(torch::kInt32);  // -0 is 0
  const Tensor order = bits.bitwise_xor(bits.bitwise_right_shift(31).bitwise_and_(0x7fffffff));
  return order.to(torch::kInt64).mul_(kLowHalf + 1).add_(kLowHalf - rows);
}

Tensor largest(const Tensor& hits, std::int64_t k) {
  return std::get<0>(hits.topk(k, 1, /*largest=*/true, /*sorted=*/false));
}

// Returns the best k (n, k) of `hits` (n, k) and the scores (n, M) of rows first, first + 1, ...
Tensor better(const Tensor& hits, Tensor scores, std::int64_t first) {
  const std::int64_t k = hits.size(1), groups = (scores.size(1) + kGroup - 1) / kGroup;
  if (const auto rest = groups * kGroup - scores.size(1); rest > 0)
    scores = torch::constant_pad_nd(scores, {0, rest}, kNoScore);
  const auto numbers = hits.options();
  Tensor rows = torch::arange(groups * kGroup, numbers).unsqueeze(0);
  if (k < groups) {
    const Tensor grouped = scores.unflatten(1, {groups, kGroup});
    const Tensor best = largest(hits_of(grouped.amax(2), torch::arange(groups, numbers)), k);
    const Tensor group = kLowHalf - best.bitwise_and(kLowHalf);
    scores = grouped.gather(1, group.unsqueeze(2).expand({-1, -1, kGroup})).flatten(1);
    rows = (group.mul(kGroup).unsqueeze(2) + torch::arange(kGroup, numbers)).flatten(1);
  }
  return largest(torch::cat({hits, hits_of(scores, rows + first)}, 1), k);
}

// Queries in two parts for products with float16 keys, which tensor cores compute several times
// faster than float32's, as exactly (nn/base/cuda.h).
struct Queries {
  Tensor high, low;  // (n, width)
  explicit Queries(const Tensor& all) { std::tie(high, low) = nn::tf32_parts(all); }
};

// (n, M): q.k, or q.k - |k|^2 / 2, for queries from `first` on, `n` at most; what is no number is
// nobody's neighbour.
Tensor scores_of(const Queries& queries, std::int64_t first, std::int64_t n, const Tensor& keys,
    const Tensor& half_norms) {
  const nn::Tf32 products(true);
  Tensor scores = torch::mm(queries.high.slice(0, first, first + n), keys.t());
  scores.addmm_(queries.low.slice(0, first, first + n), keys.t());
  if (half_norms.defined()) scores.sub_(half_norms);
  return scores.nan_to_num_(kNoScore, std::numeric_limits<float>::infinity(), kNoScore);
}

}  // namespace

DeviceRoom device_room(torch::Device device) {
  const std::int64_t memory = nn::device_memory(device);
  DeviceRoom room{std::numeric_limits<std::int64_t>::max()};
  if (memory > 0) room = {memory / 2, std::min(room.blocks, memory / 16)};
  return room;
}

DeviceSearch::DeviceSearch(std::span<const store::Half> keys, std::int64_t width,
    store::Metric metric, torch::Device device, const DeviceRoom& room)
    : keys_(torch::from_blob(const_cast<store::Half*>(keys.data()),
          {std::ssize(keys) / width, width}, torch::kFloat16)),
      metric_(metric), device_(device), block_bytes_(room.blocks), few_(room.few),
      here_(keys, width, metric) {
  const std::int64_t fit = block_bytes_ / (8 * width);  // half of the budget, as float32
  block_rows_ = std::max<std::int64_t>(1, fit / kGroup) * kGroup;
  if (std::ssize(keys) * 2 > room.keys) return;
  try {
    there_ = torch::empty(keys_.sizes(), keys_.options().device(device));
  } catch (const c10::OutOfMemoryError&) {  // other processes use the memory
    return;
  }
  std::int64_t first = 0;
  nn::BlockUpload blocks(keys_, block_rows_, device);
  for (Tensor block = blocks.next(); block.defined(); block = blocks.next()) {
    there_.slice(0, first, first + block.size(0)).copy_(block);
    first += block.size(0);
  }
}

std::int64_t DeviceSearch::resident_bytes() const {
  return there_.defined() ? there_.numel() * 2 : 0;
}

void DeviceSearch::for_each_block(
    const std::function<void(std::int64_t first, const Tensor& keys)>& body) const {
  const std::int64_t rows = keys_.size(0);
  if (there_.defined()) {
    for (std::int64_t first = 0; first < rows; first += block_rows_)
      body(first, there_.slice(0, first, first + block_rows_));
    return;
  }
  nn::BlockUpload blocks(keys_, block_rows_, device_);
  for (std::int64_t first = 0; first < rows; first += block_rows_) body(first, blocks.next());
}

// Returns the best k hits (n, k) of queries (n, width), best first.
Tensor DeviceSearch::best(const Tensor& queries, std::int64_t k) const {
  const std::int64_t n = queries.size(0);
  Tensor hits = torch::full({n, k}, no_hit(), queries.options().dtype(torch::kInt64));
  const Queries parts(queries);
  for_each_block([&](std::int64_t first, const Tensor& keys) {
    const std::int64_t rows = keys.size(0), looked_at = std::min(k * kGroup, rows) + k;
    const std::int64_t step = std::max<std::int64_t>(
        1, block_bytes_ / 2 / (rows * kBytesPerScore + looked_at * kBytesPerRow));
    const Tensor wide = keys.to(torch::kFloat32);
    const Tensor half_norms =
        metric_ == store::Metric::l2 ? wide.square().sum(1).div_(2) : Tensor();
    for (std::int64_t begin = 0; begin < n; begin += step) {
      const Tensor some = hits.slice(0, begin, begin + step);
      some.copy_(better(some, scores_of(parts, begin, step, wide, half_norms), first));
    }
  });
  return std::get<0>(hits.sort(1, /*descending=*/true));
}

void DeviceSearch::search(std::span<const float> queries, std::int64_t k, std::int64_t threads,
    std::span<std::int64_t> ids, std::span<float> scores) const {
  const std::int64_t width = keys_.size(1), n = std::ssize(queries) / width;
  if (!there_.defined() && n < few_) return here_.search(queries, k, threads, ids, scores);
  const torch::NoGradGuard no_gradient;
  const std::int64_t step = std::max<std::int64_t>(1, kHitsBytes / (8 * k));
  for (std::int64_t begin = 0; begin < n; begin += step) {
    const std::int64_t end = std::min(begin + step, n);
    const Tensor some = torch::from_blob(
        const_cast<float*>(queries.data()) + begin * width, {end - begin, width}, torch::kFloat32);
    const Tensor hits = best(nn::upload(some, device_), k).cpu();
    const auto* const hit = hits.const_data_ptr<std::int64_t>();
    for (std::int64_t q = begin; q < end; ++q) {
      float norm = 0;
      for (const float x :
          queries.subspan(static_cast<std::size_t>(q * width), static_cast<std::size_t>(width)))
        norm += x * x;
      for (std::int64_t i = q * k; i < (q + 1) * k; ++i) {
        const std::int64_t found = hit[i - begin * k];
        const float score = score_of_hit(found);
        const auto at = static_cast<std::size_t>(i);
        ids[at] = score == kNoScore ? -1 : row_of_hit(found);
        scores[at] = metric_ == store::Metric::l2 && score != kNoScore ? 2 * score - norm : score;
      }
    }
  }
}

void search_on(store::Datastore& store, torch::Device device, DeviceRoom& room) {
  if (store.index() != nullptr) return;
  auto search =
      std::make_unique<DeviceSearch>(store.keys(), store.width(), store.metric(), device, room);
  room.keys -= search->resident_bytes();
  store.look_by(std::move(search));
}

}  // namespace infer
