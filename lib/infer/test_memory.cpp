#include "infer/test_memory.h"

#include <algorithm>
#include <cmath>

#include "nn/joint_loss.h"
#include "nn/memory_block.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr std::int64_t kBlockBytes = 64 << 20;
constexpr std::int64_t kBytesPerPair = 16;  // of a MemoryBlock: score, visibility, match, a product

torch::Dtype memory_dtype(const nn::Model& model) {
  const auto dtype = model.head->weights().at(0).scalar_type();
  return dtype == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}

// (R) of any float dtype and device -> float64 on the CPU.
Tensor exact(const Tensor& tensor) { return tensor.to(torch::kCPU, torch::kFloat64); }

// log p of a distribution of its own; NaN where nothing is seen.
Tensor alone(const Tensor& positive, const Tensor& all) {
  return torch::where(all > nn::kUnseen / 2, positive - all, torch::full_like(all, std::nan("")));
}

// Adds share * source to a mixture; where the source sees nothing, its share goes to joint.
void add_share(Tensor& log_prob, const Tensor& source, const Tensor& joint, double share) {
  if (share > 0)
    log_prob = torch::logaddexp(log_prob,
                                torch::where(source.isnan(), joint, source).add(std::log(share)));
}

struct Shares {
  double joint, memory, cache;
  explicit Shares(const MemoryOptions& options)
      : memory(options.interpolated() ? options.memory_lambda : 0),
        cache(options.cache > 0 ? options.cache_lambda : 0) {
    joint = 1 - memory - cache;
  }
};

}  // namespace

HeadRows head_rows(nn::Head& head, const Tensor& f, const Tensor& targets,
                   std::int64_t block_bytes) {
  const std::int64_t rows = f.size(0);
  const std::int64_t block =
      std::max<std::int64_t>(16, block_bytes / std::max<std::int64_t>(1, head.bytes_per_row()));
  std::vector<Tensor> log_prob, log_z;
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t end = std::min(begin + block, rows);
    const auto made = head.block(f.slice(0, begin, end), targets.slice(0, begin, end), false);
    log_prob.push_back(made->log_prob);
    log_z.push_back(made->log_z);
  }
  if (log_prob.size() == 1) return {log_prob[0], log_z[0]};
  return {torch::cat(log_prob), torch::cat(log_z)};
}

Tensor mix(const Parts& parts, const MemoryOptions& options) {
  const Shares shares(options);
  Tensor log_prob = parts.joint[0] + std::log(shares.joint);
  if (parts.memory.defined()) add_share(log_prob, parts.memory[0], parts.joint[0], shares.memory);
  if (parts.cache.defined()) add_share(log_prob, parts.cache[0], parts.joint[0], shares.cache);
  return log_prob;
}

TestMemory::TestMemory(const MemoryOptions& options, std::int64_t window, bool streaming,
                       const nn::Model& model, torch::Device device, std::int64_t rows,
                       MemoryGrid grid)
    : options_(options), dtype_(memory_dtype(model)) {
  const auto keys = torch::TensorOptions().dtype(dtype_).device(device);
  if (grid.temperatures.empty()) grid.temperatures = {options.joint_temperature};
  if (grid.thetas.empty()) grid.thetas = {options.cache_theta};
  nn::MemoryRule rule = options.rule();
  if (rule.any()) {
    if (streaming) {  // a block has no context of its own: local is a reach too
      rule.reach = std::max(rule.far ? rule.reach : 0, rule.local ? window : 0);
      rule.far = true, rule.local = false;
    }
    context_ = Source{rule, std::nullopt, grid.temperatures};
    if (rule.far) context_->ring = Ring(rule.reach, model.architecture->d_key(), keys, rows);
  }
  if (options.cache > 0) {
    nn::MemoryRule cache;
    cache.far = true;
    cache.reach = options.cache;
    cache.scale_by_width = cache.gradient = false;
    std::vector<double> temperatures;
    for (const double theta : grid.thetas) temperatures.push_back(1 / theta);
    cache.temperature = temperatures[0];
    cache_ =
        Source{cache, Ring(options.cache, model.architecture->d_model(), keys, rows), temperatures};
  }
}

TestMemory::Masses TestMemory::masses(const Source& source, const Tensor& keys,
                                      const Window& window) const {
  std::vector<nn::Entries> places{{keys, window.targets, window.place}};
  if (source.ring && source.ring->size() > 0) {
    // Positions of the ring that stand in the window are the window's.
    const auto newest = source.ring->view(0, 1).place.position.item<std::int64_t>();
    const auto first = window.place.position[0].item<std::int64_t>();
    const nn::Entries before = source.ring->view(std::max<std::int64_t>(0, newest - first + 1));
    if (before.size() > 0) places.push_back(before);
  }
  std::int64_t widest = 1;
  for (const auto& entries : places) widest = std::max(widest, entries.size());
  const std::int64_t rows = window.targets.size(0);
  const std::int64_t block = std::max<std::int64_t>(16, kBlockBytes / (kBytesPerPair * widest));
  std::vector<Tensor> all, positive;  // a temperature
  nn::MemoryRule rule = source.rule;
  for (const double temperature : source.temperatures) {
    rule.temperature = temperature;
    std::vector<Tensor> block_all, block_positive;
    for (std::int64_t begin = window.first_scored; begin < rows; begin += block) {
      const std::int64_t end = std::min(begin + block, rows);
      Tensor sum_all, sum_positive;
      for (const auto& entries : places) {
        const nn::MemoryBlock seen(keys.slice(0, begin, end), window.place.slice(begin, end),
                                   window.targets.slice(0, begin, end), entries, rule);
        sum_all = sum_all.defined() ? torch::logaddexp(sum_all, seen.all) : seen.all;
        sum_positive =
            sum_positive.defined() ? torch::logaddexp(sum_positive, seen.positive) : seen.positive;
      }
      block_all.push_back(sum_all);
      block_positive.push_back(sum_positive);
    }
    all.push_back(torch::cat(block_all));
    positive.push_back(torch::cat(block_positive));
  }
  return {exact(torch::stack(all)), exact(torch::stack(positive))};
}

Parts TestMemory::score(const HeadRows& head, const Window& window) {
  Parts parts;
  parts.head = exact(head.log_prob);
  parts.joint = parts.head.unsqueeze(0);
  if (!any()) return parts;
  if (context_) {
    const Masses seen = masses(*context_, window.g.to(dtype_), window);
    if (options_.interpolated()) {
      parts.memory = alone(seen.positive, seen.all);
    } else {
      const Tensor log_z = exact(head.log_z).unsqueeze(0);
      parts.joint = nn::join({parts.joint, log_z, seen.all, seen.positive});
    }
  }
  if (cache_) {
    const Masses seen = masses(*cache_, window.f.to(dtype_), window);
    parts.cache = alone(seen.positive, seen.all);
  }
  const std::int64_t rows = window.targets.size(0);
  append(window.f.slice(0, window.first_scored), window.g.slice(0, window.first_scored),
         window.targets.slice(0, window.first_scored),
         window.place.slice(window.first_scored, rows));
  return parts;
}

Tensor TestMemory::log_probs(nn::Head& head, const Tensor& f, const Tensor& g,
                             const nn::Place& place) {
  Tensor log_z;
  const Tensor words = head.log_probs(f, &log_z).to(dtype_);
  const auto masses = [&](const Source& source, const Tensor& keys) {
    nn::MemoryRule rule = source.rule;
    rule.temperature = source.temperatures[0];
    return nn::memory_log_masses(keys.to(dtype_), place, source.ring->view(), rule, words.size(1));
  };
  const auto own = [](const Tensor& seen) {
    const Tensor all = seen.logsumexp(1, /*keepdim=*/true);
    return alone(seen, all.expand_as(seen));
  };
  Tensor joint = words, memory;
  if (context_ && context_->ring) {
    const Tensor seen = masses(*context_, g);
    if (options_.interpolated()) {
      memory = own(seen);
    } else {
      const Tensor z = log_z.to(dtype_).unsqueeze(1);
      joint = torch::logaddexp(words + z, seen) -
              torch::logaddexp(z, seen.logsumexp(1, /*keepdim=*/true));
    }
  }
  if (!memory.defined() && !cache_) return joint;
  const Shares shares(options_);
  Tensor log_prob = joint + std::log(shares.joint);
  if (memory.defined()) add_share(log_prob, memory, joint, shares.memory);
  if (cache_) add_share(log_prob, own(masses(*cache_, f)), joint, shares.cache);
  return log_prob;
}

void TestMemory::append(const Tensor& f, const Tensor& g, const Tensor& labels,
                        const nn::Place& place) {
  if (context_ && context_->ring) context_->ring->append(g, labels, place);
  if (cache_) cache_->ring->append(f, labels, place);
}

void TestMemory::select(const Tensor& rows) {
  if (context_ && context_->ring) context_->ring->select(rows);
  if (cache_) cache_->ring->select(rows);
}

void TestMemory::clear() {
  if (context_ && context_->ring) context_->ring->clear();
  if (cache_) cache_->ring->clear();
}

}  // namespace infer
