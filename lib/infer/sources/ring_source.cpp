#include "infer/sources/ring_source.h"

namespace infer {
namespace {

constexpr std::int64_t kPairsBytes = 64 << 20;
constexpr std::int64_t kBytesPerPair = 16;  // of a MemoryBlock: score, visibility, match, a product

Tensor is_seen(const Tensor& mass) { return mass > nn::kUnseen / 2; }

}  // namespace

Tensor alone(const Tensor& positive, const Tensor& all) {
  return torch::where(is_seen(positive), positive - all, -HUGE_VAL).masked_fill(~is_seen(all), NAN);
}

Tensor alone(const Tensor& masses) {
  return alone(masses, masses.logsumexp(1, /*keepdim=*/true).expand_as(masses));
}

Tensor part_of(const Tensor& mass, const Tensor& all) {
  return torch::where(is_seen(mass), (mass - all).exp(), 0.);
}

nn::MemoryRule RingSource::Part::at_first() const {
  nn::MemoryRule first = rule;
  first.temperature = temperatures[0];
  return first;
}

nn::Entries RingSource::Part::shown(nn::Entries entries) const {
  if (beyond > 0) entries.place.position = entries.place.position + beyond;
  return entries;
}

RingSource::RingSource(
    std::vector<Part> parts, std::optional<std::int64_t> ring, bool of_f, torch::Dtype dtype)
    : parts_(std::move(parts)), of_f_(of_f), dtype_(dtype) {
  if (ring) ring_.emplace(*ring);
}

// Positions of the ring that are also in the window count as the window's.
nn::Entries RingSource::before(const Window& window) const {
  if (!ring_ || ring_->size() == 0) return {{}, {}, nn::TokenPositions::empty()};
  const auto newest = ring_->view(0, 1).place.position.item<std::int64_t>();
  const auto first = window.place.position[0].item<std::int64_t>();
  return ring_->view(std::max<std::int64_t>(0, newest - first + 1));
}

// Returns what the entries of the ring and the window give together.
std::vector<Tensor> RingSource::recall(const Window& window, const Tensor& /*targets*/) {
  const Tensor keys = (of_f_ ? window.output : window.key).to(dtype_);
  std::vector<nn::Entries> places{{keys, window.targets, window.place}};
  const nn::Entries older = before(window);
  if (older.size() > 0) places.push_back(older);
  const auto widest = core::max_of(places, &nn::Entries::size, 1);
  const std::int64_t rows = window.targets.size(0);
  const std::int64_t block = std::max<std::int64_t>(16, kPairsBytes / (kBytesPerPair * widest));
  std::vector<Tensor> recalled;
  for (const Part& part : parts_) {
    std::vector<Tensor> all, positive;
    for (std::int64_t begin = window.first_scored; begin < rows; begin += block) {
      const std::int64_t end = std::min(begin + block, rows);
      nn::Masses sum;
      for (const auto& entries : places) {
        sum.add(nn::tempered_masses(keys.slice(0, begin, end), window.place.slice(begin, end),
            window.targets.slice(0, begin, end), part.shown(entries), part.rule,
            part.temperatures));
      }
      all.push_back(sum.all);
      positive.push_back(sum.positive);
    }
    recalled.push_back(torch::cat(all, 1)), recalled.push_back(torch::cat(positive, 1));
  }
  return recalled;
}

Tensor RingSource::token_masses(const VocabularyRows& rows, const Part& part) const {
  const auto of = [&](const Tensor& queries, const nn::Entries& entries) {
    return nn::memory_log_masses(
        queries, rows.place, part.shown(entries), part.at_first(), rows.vocabulary());
  };
  if (rows.window == nullptr) return of((of_f_ ? rows.output : rows.key).to(dtype_), ring_->view());
  const Window& window = *rows.window;
  const Tensor keys = (of_f_ ? window.output : window.key).slice(0, 0, rows.end).to(dtype_);
  const Tensor queries = keys.slice(0, rows.begin);
  const nn::Entries own{
      keys, window.targets.slice(0, 0, rows.end), window.place.slice(0, rows.end)};
  const Tensor masses = of(queries, own);
  const nn::Entries older = before(window);
  return older.size() == 0 ? masses : torch::logaddexp(masses, of(queries, older));
}

nn::Masses RingSource::masses_of(
    const Part& part, const Window& window, std::int64_t begin, std::int64_t end) const {
  const Tensor keys = (of_f_ ? window.output : window.key).slice(0, 0, end).to(dtype_);
  const nn::TokenPositions place = window.place.slice(begin, end);
  const Tensor targets = window.targets.slice(0, begin, end);
  const auto of = [&](const nn::Entries& entries) {
    const auto seen = nn::tempered_masses(keys.slice(0, begin), place, targets, part.shown(entries),
        part.rule, {part.temperatures[0]});
    return nn::Masses{seen.all[0].to(torch::kCPU, torch::kFloat64),
        seen.positive[0].to(torch::kCPU, torch::kFloat64)};
  };
  nn::Masses sum = of({keys, window.targets.slice(0, 0, end), window.place.slice(0, end)});
  if (const nn::Entries older = before(window); older.size() > 0) sum.add(of(older));
  return sum;
}

void RingSource::append(
    const Tensor& f, const Tensor& g, const Tensor& labels, const nn::TokenPositions& place) {
  if (ring_) ring_->append((of_f_ ? f : g).to(dtype_), labels, place);
}

void RingSource::select(const Tensor& rows) {
  if (ring_) ring_->select(rows);
}

void RingSource::join(const Source& other, std::int64_t streams, std::int64_t more) {
  if (ring_) ring_->join(*dynamic_cast<const RingSource&>(other).ring_, streams, more);
}

void RingSource::clear() {
  if (ring_) ring_->clear();
}

}  // namespace infer
