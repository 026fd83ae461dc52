#include "infer/memory/stream_memory.h"

#include <algorithm>
#include <cmath>

#include "infer/memory/gate_features.h"
#include "infer/memory/gated_search.h"
#include "nn/memory/joint_loss.h"
#include "nn/memory/memory_block.h"

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

// log p of a distribution of its own; -inf where p is 0, NaN where nothing is seen.
Tensor alone(const Tensor& positive, const Tensor& all) {
  const auto seen = [](const Tensor& mass) { return mass > nn::kUnseen / 2; };
  return torch::where(seen(positive), positive - all, -HUGE_VAL).masked_fill(~seen(all), NAN);
}

// Adds share * source to a mixture; where the source sees nothing, its share goes to joint.
void add_share(Tensor& log_prob, const Tensor& source, const Tensor& joint, const Weight& share) {
  if (share.any())
    log_prob = torch::logaddexp(log_prob, share.of(torch::where(source.isnan(), joint, source)));
}

Tensor mix_by(const Shares& shares, const Parts& parts, const std::vector<double>& ngrams) {
  const Tensor joint = parts.joint[0][0];
  Tensor log_prob = shares.joint.of(joint);
  if (parts.memory.defined()) add_share(log_prob, parts.memory[0], joint, shares.memory);
  if (parts.cache.defined()) add_share(log_prob, parts.cache[0], joint, shares.cache);
  if (parts.stores.defined()) add_share(log_prob, parts.stores[0][0], joint, shares.stores);
  for (std::size_t i = 0; parts.with.defined() && i < shares.with.size(); ++i)
    add_share(log_prob, parts.with[static_cast<std::int64_t>(i)], joint, shares.with[i]);
  if (!parts.ngrams.bucket.defined()) return log_prob;
  return shares.ngrams.defined() ? mix_ngrams(log_prob, parts.ngrams, shares.ngrams)
                                 : mix_ngrams(log_prob, parts.ngrams, ngrams);
}

}  // namespace

HeadRows head_rows(nn::Head& head, const Tensor& f, const nn::Targets& targets,
                   std::int64_t block_bytes) {
  const std::int64_t rows = f.size(0);
  const std::int64_t block =
      std::max<std::int64_t>(16, block_bytes / std::max<std::int64_t>(1, head.bytes_per_row()));
  std::vector<Tensor> log_prob, log_z;
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t end = std::min(begin + block, rows);
    const auto made = head.block(f.slice(0, begin, end), targets.slice(begin, end), false);
    log_prob.push_back(made->log_prob);
    log_z.push_back(made->log_z);
  }
  if (log_prob.size() == 1) return {log_prob[0], log_z[0]};
  return {torch::cat(log_prob), torch::cat(log_z)};
}

HeadRows confident_rows(nn::Head& head, const Tensor& f, const nn::Targets& targets,
                        std::int64_t block_bytes) {
  const std::int64_t rows = f.size(0);
  const std::int64_t block =
      std::max<std::int64_t>(16, block_bytes / std::max<std::int64_t>(1, head.bytes_per_row()));
  std::vector<Tensor> log_prob, log_z, confidence;
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t end = std::min(begin + block, rows);
    Tensor z;
    const Tensor words = head.log_probs(f.slice(0, begin, end), &z);
    log_prob.push_back(words.gather(1, targets.there.slice(0, begin, end).unsqueeze(1)).squeeze(1));
    log_z.push_back(z);
    confidence.push_back(confidence_of(words));
  }
  return {torch::cat(log_prob), torch::cat(log_z), torch::cat(confidence)};
}

GateInputs gate_inputs(const Parts& parts, std::int64_t theta) {
  GateInputs inputs;
  const GateSights& gates = parts.gates;
  inputs.confidence = gates.confidence;
  if (gates.cache_mass.defined()) inputs.own["cache"] = gates.cache_mass[theta].unsqueeze(1);
  if (gates.stores.defined()) inputs.own["datastore"] = gates.stores;
  if (gates.with.defined()) inputs.own["with"] = gates.with;
  if (parts.ngrams.bucket.defined()) {
    inputs.own["ngrams"] = parts.ngrams.features;
    inputs.bucket = parts.ngrams.bucket;
  }
  return inputs;
}

Tensor mix(const Parts& parts, const MemoryPlan& plan) {
  if (!plan.gates.any()) return mix_constant(parts, plan);
  return mix_by(gated_shares(plan, gate_inputs(parts)), parts, plan.ngrams.lambda);
}

Tensor mix_constant(const Parts& parts, const MemoryPlan& plan) {
  return mix_by(constant_shares(plan), parts, plan.ngrams.lambda);
}

void MemoryGrid::fill(const MemoryPlan& plan) {
  if (temperatures.empty()) temperatures = {plan.rule.temperature};
  if (thetas.empty()) thetas = {plan.cache_theta};
  if (store_temperatures.empty()) store_temperatures = {plan.stores.temperature};
  if (nprobes.empty()) nprobes = {plan.stores.nprobe};
}

StreamMemory::StreamMemory(const MemoryPlan& plan, std::int64_t window, bool streaming,
                           const nn::Model& model, std::int64_t rows, MemoryGrid grid)
    : plan_(plan),
      rows_(rows),
      root_width_(std::sqrt(static_cast<double>(model.architecture->d_key()))),
      dtype_(memory_dtype(model)) {
  grid.fill(plan);
  nn::MemoryRule rule = plan.rule;
  if (rule.any()) {
    if (streaming) {  // a block has no context of its own: local is a reach too
      rule.reach = std::max(rule.far ? rule.reach : 0, rule.local ? window : 0);
      rule.far = true, rule.local = false;
    }
    context_ = Source{rule, std::nullopt, grid.temperatures};
    local_rule_ = context_->rule;
    if (streaming) {
      local_rule_.reach = window;
    } else {
      local_rule_.far = false;
    }
    if (rule.far) context_->ring = nn::EntryRing(rule.reach);
  }
  if (plan.cache > 0) {
    nn::MemoryRule cache;
    cache.far = true;
    cache.reach = plan.cache;
    cache.scale_by_width = cache.gradient = false;
    std::vector<double> temperatures;
    for (const double theta : grid.thetas) temperatures.push_back(1 / theta);
    cache.temperature = temperatures[0];
    cache_ = Source{cache, nn::EntryRing(plan.cache), temperatures};
  }
  if (plan.ngrams.any()) ngrams_.emplace(plan.ngrams, rows);
  grid_ = std::move(grid);
}

// Positions of the ring that stand in the window are the window's.
nn::Entries StreamMemory::before(const Source& source, const Window& window) const {
  if (!source.ring || source.ring->size() == 0) return {{}, {}, nn::Place::empty()};
  const auto newest = source.ring->view(0, 1).place.position.item<std::int64_t>();
  const auto first = window.place.position[0].item<std::int64_t>();
  return source.ring->view(std::max<std::int64_t>(0, newest - first + 1));
}

Masses StreamMemory::masses(const Source& source, const Tensor& keys, const Window& window) const {
  std::vector<nn::Entries> places{{keys, window.targets, window.place}};
  const nn::Entries older = before(source, window);
  if (older.size() > 0) places.push_back(older);
  std::int64_t widest = 1;
  for (const auto& entries : places) widest = std::max(widest, entries.size());
  const std::int64_t rows = window.targets.size(0);
  const std::int64_t block = std::max<std::int64_t>(16, kBlockBytes / (kBytesPerPair * widest));
  std::vector<Tensor> all, positive;  // (n_temperatures, rows of a block)
  for (std::int64_t begin = window.first_scored; begin < rows; begin += block) {
    const std::int64_t end = std::min(begin + block, rows);
    nn::TemperedMasses sum;
    for (const auto& entries : places) {
      const auto seen = nn::tempered_masses(
          keys.slice(0, begin, end), window.place.slice(begin, end),
          window.targets.slice(0, begin, end), entries, source.rule, source.temperatures);
      sum.all = sum.all.defined() ? torch::logaddexp(sum.all, seen.all) : seen.all;
      sum.positive =
          sum.positive.defined() ? torch::logaddexp(sum.positive, seen.positive) : seen.positive;
    }
    all.push_back(sum.all);
    positive.push_back(sum.positive);
  }
  return {torch::cat(all, 1), torch::cat(positive, 1)};
}

std::vector<double> StreamMemory::joint_divisors() const {
  std::vector<double> divisors;
  for (const double temperature : grid_.temperatures) divisors.push_back(root_width_ * temperature);
  return divisors;
}

// (n_nprobes, n_temperatures, R): the head with local and long, the stores, or all of them in one
// sum.
Tensor StreamMemory::joined(const HeadRows& head, const Tensor& targets, const Masses& context,
                            const std::vector<Neighbours>& found) const {
  const Tensor &log_prob = head.log_prob, &log_z = head.log_z;
  const auto temperatures = static_cast<std::int64_t>(grid_.temperatures.size());
  const auto nprobes = static_cast<std::int64_t>(grid_.nprobes.size());
  const std::vector<std::int64_t> grid = {nprobes, temperatures, log_prob.size(0)};
  if (!plan_.stores.joined()) {
    const Tensor joint =
        context.any() ? nn::join({log_prob, log_z, context.all, context.positive}) : log_prob;
    return joint.expand(grid);
  }
  std::vector<Tensor> joint;
  for (const auto& neighbours : found) {
    StoreMasses seen = store_masses(neighbours, targets, joint_divisors());
    if (context.any()) {
      seen.all = torch::logaddexp(seen.all, context.all);
      seen.positive = torch::logaddexp(seen.positive, context.positive);
    }
    joint.push_back(nn::join({log_prob, log_z, seen.all, seen.positive}));
  }
  return torch::stack(joint);
}

Recalled StreamMemory::recall(const Window& window, const Tensor& targets) {
  Recalled recalled;
  if (context_) recalled.context = masses(*context_, window.g.to(dtype_), window);
  if (cache_) recalled.cache = masses(*cache_, window.f.to(dtype_), window);
  if (ngrams_) {
    ngrams_->read(0, window.before);
    recalled.ngrams = ngrams_->score(targets);
  }
  if (!remembers()) return recalled;
  const std::int64_t rows = window.targets.size(0);
  const std::int64_t first = window.first_new.value_or(window.first_scored);
  append(window.f.slice(0, first), window.g.slice(0, first), window.targets.slice(0, first),
         window.place.slice(first, rows));
  return recalled;
}

Parts StreamMemory::score(const HeadRows& head, const Tensor& targets, const Recalled& recalled,
                          const std::vector<Neighbours>& found) const {
  Parts parts;
  parts.head = head.log_prob;
  parts.ngrams = recalled.ngrams;
  const Masses& context = recalled.context;
  if (plan_.interpolated() && context_) parts.memory = alone(context.positive, context.all);
  parts.joint = joined(head, targets, plan_.interpolated() ? Masses{} : context, found);
  if (plan_.stores.interpolated()) {
    std::vector<Tensor> stores;
    for (const auto& neighbours : found) {
      const StoreMasses seen = store_masses(neighbours, targets, grid_.store_temperatures);
      stores.push_back(alone(seen.positive, seen.all));
    }
    parts.stores = torch::stack(stores);
  }
  const Masses& cache = recalled.cache;
  if (cache_) parts.cache = alone(cache.positive, cache.all);
  if (!plan_.gates.any()) return parts;
  parts.gates.confidence = head.confidence;
  if (plan_.stores.interpolated()) parts.gates.stores = gate_features_of(found[0]);
  if (cache_) parts.gates.cache_mass = cache.all.masked_fill(cache.all < nn::kUnseen / 2, NAN);
  return parts;
}

Tensor StreamMemory::log_probs(nn::Head& head, const Tensor& f, const Tensor& g,
                               const nn::Place& place, const std::vector<Tensor>& with) {
  with_ = with;
  const Words words = words_of(head, f);
  if (plan_.stores.any()) {
    const Tensor confidence = plan_.gates.skips() ? confidence_of(words.log_prob) : Tensor{};
    found_ = find(plan_, g, allowed_searches(plan_, confidence), pointers_, grid_.nprobes[0], {},
                  searches_);
  }
  contexts_.clear();
  for (std::int64_t row = 0; ngrams_ && row < rows_; ++row)
    contexts_.push_back(ngrams_->context(row));
  return mixture(words, [&](const Source& source, bool of_f, std::int64_t n_words) {
    return nn::memory_log_masses((of_f ? f : g).to(dtype_), place, source.ring->view(),
                                 rule_of(source), n_words);
  });
}

Tensor StreamMemory::log_probs(nn::Head& head, const Window& window, std::int64_t begin,
                               std::int64_t end, const Neighbours& found,
                               const std::vector<Tensor>& with) {
  found_ = found;
  with_ = with;
  contexts_.clear();
  if (ngrams_) {
    if (begin == window.first_scored) ngrams_->read(0, window.before);
    const Tensor targets = window.targets.slice(0, begin, end).to(torch::kCPU).contiguous();
    for (std::int64_t i = 0; i < end - begin; ++i) {
      contexts_.push_back(ngrams_->context(0));
      ngrams_->read(0, {targets.const_data_ptr<std::int64_t>() + i, 1});
    }
  }
  const nn::Place place = window.place.slice(begin, end);
  return mixture(words_of(head, window.f.slice(0, begin, end)), [&](const Source& source, bool of_f,
                                                                    std::int64_t words) {
    const Tensor keys = (of_f ? window.f : window.g).slice(0, 0, end).to(dtype_);
    const Tensor queries = keys.slice(0, begin);
    const nn::MemoryRule rule = rule_of(source);
    const nn::Entries own{keys, window.targets.slice(0, 0, end), window.place.slice(0, end)};
    Tensor masses = nn::memory_log_masses(queries, place, own, rule, words);
    const nn::Entries older = before(source, window);
    if (older.size() == 0) return masses;
    return torch::logaddexp(masses, nn::memory_log_masses(queries, place, older, rule, words));
  });
}

nn::MemoryRule StreamMemory::rule_of(const Source& source) {
  nn::MemoryRule rule = source.rule;
  rule.temperature = source.temperatures[0];
  return rule;
}

StreamMemory::Words StreamMemory::words_of(nn::Head& head, const Tensor& f) const {
  Tensor log_z;
  const Tensor log_prob = head.log_probs(f, &log_z).to(dtype_);
  return {log_prob, log_z.to(dtype_).unsqueeze(1)};
}

// cache_mass (R, 1), where there is a cache. A gate's share of n-grams is their contexts' too.
Shares StreamMemory::shares(const Words& words, const Tensor& cache_mass) {
  if (!plan_.gates.any()) return constant_shares(plan_);
  GateInputs inputs;
  inputs.confidence = exact(confidence_of(words.log_prob));
  if (cache_mass.defined()) inputs.own["cache"] = cache_mass;
  if (plan_.stores.interpolated()) inputs.own["datastore"] = gate_features_of(found_);
  if (const auto with = plan_.with.gated(); with >= 0)
    inputs.own["with"] = exact(confidence_of(with_[static_cast<std::size_t>(with)]));
  if (ngrams_) {
    std::vector<double> features;
    std::vector<std::int64_t> buckets;
    for (const auto& context : contexts_) {
      const auto seen = gate_features_of(context);
      features.insert(features.end(), seen.begin(), seen.end());
      buckets.push_back(context.bucket);
    }
    inputs.own["ngrams"] = torch::tensor(features, torch::kFloat64).view({-1, 3});
    inputs.bucket = torch::tensor(buckets, torch::kInt64);
  }
  Shares shares = gated_shares(plan_, inputs);
  if (shares.ngrams.defined())
    for (std::size_t i = 0; i < contexts_.size(); ++i)
      if (contexts_[i].bucket >= 0)
        contexts_[i].lambda = shares.ngrams[static_cast<std::int64_t>(i)].item<double>();
  return shares;
}

Tensor StreamMemory::mixture(const Words& of_head, const WordMasses& masses) {
  const Tensor& words = of_head.log_prob;
  const auto own = [](const Tensor& seen) {
    const Tensor all = seen.logsumexp(1, /*keepdim=*/true);
    return alone(seen, all.expand_as(seen));
  };
  const StorePlan& stores = plan_.stores;
  const auto store_masses = [&](double divisor) {
    return store_word_masses(found_, divisor, words.size(1)).to(words.options());
  };
  Tensor seen, memory;  // log-masses in the head's softmax; a distribution of its own
  if (context_)
    (plan_.interpolated() ? memory : seen) = masses(*context_, /*of_f=*/false, words.size(1));
  if (memory.defined()) memory = own(memory);
  if (stores.joined()) {
    const Tensor more = store_masses(joint_divisors()[0]);
    seen = seen.defined() ? torch::logaddexp(seen, more) : more;
  }
  Tensor joint = words;
  joint_log_z_ = of_head.log_z;
  if (seen.defined()) {
    const Tensor mass = seen.logsumexp(1, /*keepdim=*/true);
    const Tensor log_z = torch::logaddexp(joint_log_z_, mass);
    const Tensor divisor =  // of what the memories give; where they give nothing it is the whole
        stores.combine == "released" ? torch::where(mass > nn::kUnseen / 2, mass, log_z) : log_z;
    joint = torch::logaddexp(words + (joint_log_z_ - log_z), seen - divisor);
    joint_log_z_ = divisor;
  }
  Tensor cache, cache_mass;
  if (cache_) {
    cache = masses(*cache_, /*of_f=*/true, words.size(1));
    cache_mass = exact(cache.logsumexp(1, /*keepdim=*/true));
    cache_mass.masked_fill_(cache_mass < nn::kUnseen / 2, NAN);
  }
  const Shares shares = this->shares(of_head, cache_mass);
  joint_share_ = shares.joint.column(joint_log_z_);
  stores_share_ = shares.stores.column(joint_log_z_);
  cache_share_ = shares.cache.column(joint_log_z_);
  memory_share_ = shares.memory.column(joint_log_z_);
  Tensor log_prob = shares.joint.of(joint);
  const auto add = [&](const Tensor& source, const Weight& share) {
    add_share(log_prob, source, joint, share);
    joint_share_ += source.slice(1, 0, 1).isnan() * share.column(joint_log_z_);
  };
  if (memory.defined()) add(memory, shares.memory);
  if (cache_) add(own(cache), shares.cache);
  if (stores.interpolated()) add(own(store_masses(stores.temperature)), shares.stores);
  with_shares_.clear();
  for (std::size_t i = 0; i < with_.size(); ++i) {
    with_[i] = with_rows(with_[i], words.size(1), words);
    add(with_[i], shares.with[i]);
    with_shares_.push_back(shares.with[i].column(joint_log_z_));
  }
  rest_ = torch::ones_like(joint_share_);
  return ngrams_ ? ngrams_->mix(log_prob, contexts_, rest_) : log_prob;
}

std::vector<StoreShare> StreamMemory::store_shares(std::int64_t row, std::int64_t token,
                                                   double log_prob) const {
  const StorePlan& stores = plan_.stores;
  if (!stores.any()) return {};
  const auto number = [&](const Tensor& of) { return of[row][0].item<double>(); };
  const auto logits = [&, one = found_.slice(row, row + 1)](double divisor) {
    return one.logits(divisor)[0].to(torch::kFloat64);
  };
  Tensor mass = torch::zeros_like(found_.scores[row], torch::kFloat64);
  if (stores.joined())
    mass += number(joint_share_) * (logits(joint_divisors()[0]) - number(joint_log_z_)).exp();
  if (stores.interpolated())
    mass += number(stores_share_) * logits(stores.temperature).softmax(0).nan_to_num(0);
  mass *= number(rest_);
  const auto values = mass.accessor<double, 1>();
  const auto labels = found_.labels.accessor<std::int64_t, 2>()[row];
  const auto rows = found_.rows.accessor<std::int64_t, 2>()[row];
  const auto of = found_.stores.accessor<std::int64_t, 2>()[row];
  std::vector<StoreShare> shares;
  for (std::int64_t i = 0; i < mass.size(0); ++i)
    if (labels[i] == token) shares.push_back({of[i], rows[i], values[i] / std::exp(log_prob)});
  return shares;
}

std::optional<NgramShare> StreamMemory::ngram_share(std::int64_t row, std::int64_t token,
                                                    double log_prob) const {
  if (!ngrams_) return std::nullopt;
  return ngrams_->share(contexts_[static_cast<std::size_t>(row)], token, log_prob);
}

std::vector<double> StreamMemory::with_shares(std::int64_t row, std::int64_t token,
                                              double log_prob) const {
  std::vector<double> shares;
  for (std::size_t i = 0; i < with_.size(); ++i)
    shares.push_back(with_shares_[i][row][0].item<double>() * rest_[row][0].item<double>() *
                     std::exp(with_[i][row][token].item<double>() - log_prob));
  return shares;
}

void StreamMemory::read(std::int64_t row, std::span<const std::int64_t> tokens) {
  if (ngrams_) ngrams_->read(row, tokens);
  if (plan_.stores.follow == 0 || found_.size() == 0) return;
  pointers_.resize(static_cast<std::size_t>(rows_));
  pointers_[static_cast<std::size_t>(row)].advance(*plan_.stores.opened, found_, row, tokens[0]);
}

void StreamMemory::append(const Tensor& f, const Tensor& g, const Tensor& labels,
                          const nn::Place& place) {
  const auto by_step = [this](const Tensor& tensor) { return tensor.unflatten(0, {-1, rows_}); };
  const nn::Place places{by_step(place.run), by_step(place.segment), by_step(place.position)};
  if (context_ && context_->ring)
    context_->ring->append(by_step(g).to(dtype_), by_step(labels), places);
  if (cache_) cache_->ring->append(by_step(f).to(dtype_), by_step(labels), places);
}

void StreamMemory::select(const Tensor& rows) {
  rows_ = rows.size(0);
  if (context_ && context_->ring) context_->ring->select(rows);
  if (cache_) cache_->ring->select(rows);
  if (ngrams_) ngrams_->select(rows);
  if (plan_.stores.follow == 0 || found_.size() == 0) return;
  std::vector<Pointers> pointers;
  for (std::int64_t i = 0; i < rows.size(0) && !pointers_.empty(); ++i)
    pointers.push_back(pointers_[static_cast<std::size_t>(rows[i].item<std::int64_t>())]);
  pointers_ = std::move(pointers);
  found_ = found_.select(rows);
}

void StreamMemory::clear() {
  if (context_ && context_->ring) context_->ring->clear();
  if (cache_) cache_->ring->clear();
  if (ngrams_) ngrams_->clear();
}

}  // namespace infer
