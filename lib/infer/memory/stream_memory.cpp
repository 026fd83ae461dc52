#include "infer/memory/stream_memory.h"

#include "nn/base/upload.h"
#include "nn/memory/joint_loss.h"

namespace infer {
namespace {

Tensor pick(
    Tensor tensor, const std::vector<std::size_t>& axes, const std::vector<std::size_t>& places) {
  if (!tensor.defined()) return tensor;
  for (const std::size_t axis : axes) {
    const auto place = static_cast<std::int64_t>(axis < places.size() ? places[axis] : 0);
    tensor = tensor.select(0, std::min(place, tensor.size(0) - 1));
  }
  return tensor;
}

torch::Dtype memory_dtype(const nn::Model& model) {
  const auto dtype = model.head->weights().at(0).scalar_type();
  return dtype == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}

// Selects the components (R, V) at tokens (R).
Components at_tokens(const Components& components, const Tensor& tokens) {
  return taken(components, [&](const Tensor& log_probs) {
    return log_probs.gather(1, tokens.to(log_probs.device()).unsqueeze(1)).squeeze(1);
  });
}

constexpr std::int64_t kLearnBytes = 64 << 20;  // bytes of whole rows of log-probabilities

}  // namespace

Components Parts::at(const MemoryPlan& plan, const std::vector<std::size_t>& places,
    const std::vector<bool>* kept) const {
  Components at;
  nn::Masses seen, own;  // of all parts, and of the parts trained with the model
  at.gates.confidence = confidence;
  const auto kinds = plan.kinds();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const SourceScores& source = sources[i];
    const auto here = [&](const Tensor& tensor) { return pick(tensor, source.axes, places); };
    if (kept != nullptr && !(*kept)[i]) {
      for (std::size_t j = 0; j < source.separate.size(); ++j)
        at.separate.push_back(torch::full_like(head, NAN));
      if (source.bucket.defined())
        at.gates.buckets[kinds[i]->name()] = torch::full_like(source.bucket, -1);
      continue;
    }
    const auto parts = plan.joint(*kinds[i]);
    for (std::size_t j = 0; j < source.joined.size(); ++j) {
      const nn::Masses more{biased(here(source.joined[j].all), parts[j].bias),
          biased(here(source.joined[j].positive), parts[j].bias)};
      seen.add(more);
      if (plan.online && parts[j].trained) own.add(more);
    }
    for (const auto& own : source.separate) at.separate.push_back(here(own));
    if (source.bucket.defined()) at.gates.buckets[kinds[i]->name()] = source.bucket;
    if (source.features.defined()) at.gates.by_source[kinds[i]->name()] = here(source.features);
  }
  const auto joined = [&](const nn::Masses& masses) {
    return masses.all.defined() ? nn::join({head, log_z, masses.all, masses.positive}) : head;
  };
  at.joint = joined(seen);
  if (seen.all.defined()) at.head = joined(own);
  return at;
}

const Neighbours* Parts::found() const {
  for (const auto& source : sources)
    if (source.found) return source.found.get();
  return nullptr;
}

std::vector<Parts::Member> Parts::members() {
  std::vector<Member> all{{&head, false}, {&log_z, false}, {&confidence, true}};
  for (auto& source : sources) {
    for (auto& [seen, hit] : source.joined)
      all.push_back({&seen, false}), all.push_back({&hit, false});
    for (auto& own : source.separate) all.push_back({&own, false});
    all.push_back({&source.bucket, false});
    all.push_back({&source.features, true});
  }
  all.push_back({&weight, false});
  return all;
}

StreamMemory::StreamMemory(const MemoryPlan& plan, std::int64_t window, bool streaming,
    const nn::Model& model, std::int64_t rows, const Grid& grid)
    : plan_(plan), rows_(rows), dtype_(memory_dtype(model)), remembers_(plan.remembers()),
      mixture_(plan) {
  const StreamShape shape{window, streaming, rows, model.architecture->d_key(), dtype_};
  for (const auto* const kind : plan_.kinds()) sources_.push_back(kind->open(plan_, shape, grid));
  if (plan_.online) online_.assign(static_cast<std::size_t>(rows), OnlineWeights(mixture_));
}

StreamMemory::Asked StreamMemory::look_up(const Lookup& lookup) {
  return core::mapped(sources_, [&](const auto& source) { return source->look_up(lookup); });
}

void StreamMemory::announce(const shard::Dataset& data) {
  for (const auto& source : sources_) source->announce(data);
}

StreamMemory::Recalled StreamMemory::recall(const Window& window, const Tensor& targets) {
  auto recalled =
      core::mapped(sources_, [&](const auto& source) { return source->recall(window, targets); });
  if (remembers()) remember(window);
  return recalled;
}

void StreamMemory::remember(const Window& window) {
  const std::int64_t first = window.first_new.value_or(window.first_scored);
  append(window.output.slice(0, first), window.key.slice(0, first), window.targets.slice(0, first),
      window.place.slice(first, window.targets.size(0)));
}

Parts StreamMemory::score(const HeadRows& head, const Tensor& targets, const Recalled& recalled,
    const Asked& asked, std::int64_t offset, std::uint64_t first) {
  Parts parts{head.log_prob, head.log_z, head.confidence};
  for (std::size_t i = 0; i < sources_.size(); ++i)
    parts.sources.push_back(sources_[i]->score(
        {targets, recalled[i], i < asked.size() ? asked[i].get() : nullptr, offset, first}));
  return parts;
}

Tensor StreamMemory::mix(const Parts& parts, bool fresh) {
  const Components components = parts.at(plan_);
  if (fresh && !online_.empty()) online_[0] = OnlineWeights(mixture_);
  return mixture_.mix(components,
      online_.empty() ? mixture_.weights(components.gates) : online_[0].learn(components));
}

Tensor StreamMemory::log_probs(nn::Head& head, const Tensor& f, const Tensor& g,
    const nn::TokenPositions& place, const std::vector<Tensor>& ensemble) {
  return mix(head, {f, g, place, {}, ensemble}, nullptr);
}

Tensor StreamMemory::log_probs(nn::Head& head, const Window& window, std::int64_t begin,
    std::int64_t end, const Asked* asked, std::int64_t offset,
    const std::vector<Tensor>& ensemble) {
  VocabularyRows rows{window.output.slice(0, begin, end), window.key.slice(0, begin, end),
      window.place.slice(begin, end), {}, ensemble, &window, begin, end};
  rows.offset = offset;
  return mix(head, std::move(rows), asked);
}

Tensor StreamMemory::mix(nn::Head& head, VocabularyRows rows, const Asked* asked) {
  Tensor head_z;
  rows.head = head.log_probs(rows.output, &head_z).to(dtype_);
  if (plan_.gates.any())
    rows.confidence = confidence_of(rows.head).to(torch::kCPU, torch::kFloat64);
  Components components{rows.head};
  components.gates.confidence = rows.confidence;
  Tensor seen, own;  // log-masses in the softmax: all parts; trained parts
  const auto add = [](Tensor& sum, const Tensor& more) {
    sum = sum.defined() ? torch::logaddexp(sum, more) : more;
  };
  mixed_ = {};
  const auto kinds = plan_.kinds();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    rows.found = asked == nullptr ? nullptr : (*asked)[i].get();
    VocabularyScores scores = sources_[i]->score_vocabulary(rows);
    const auto parts = plan_.joint(*kinds[i]);
    for (std::size_t j = 0; j < scores.masses.size(); ++j) {
      const Tensor more = biased(scores.masses[j], parts[j].bias);
      add(seen, more);
      if (plan_.online && parts[j].trained) add(own, more);
    }
    mixed_.begins.push_back(components.separate.size());
    for (auto& own : scores.separate) components.separate.push_back(std::move(own));
    if (scores.bucket.defined()) components.gates.buckets[kinds[i]->name()] = scores.bucket;
    if (scores.features.defined()) components.gates.by_source[kinds[i]->name()] = scores.features;
  }
  mixed_.begins.push_back(components.separate.size());
  Tensor log_z = head_z.to(dtype_).unsqueeze(1);
  if (seen.defined()) {
    const Tensor mass = seen.logsumexp(1, /*keepdim=*/true);
    const Tensor all = torch::logaddexp(log_z, mass);
    const Tensor divisor =  // normaliser of the sources' masses; the whole if they have none
        plan_.released() ? torch::where(mass > nn::kUnseen / 2, mass, all) : all;
    components.joint = torch::logaddexp(rows.head + (log_z - all), seen - divisor);
    components.head = rows.head;
    if (own.defined()) {
      const Tensor both = torch::logaddexp(log_z, own.logsumexp(1, /*keepdim=*/true));
      components.head = torch::logaddexp(rows.head + (log_z - both), own - both);
    }
    log_z = divisor;
  }
  mixed_.log_z = log_z.squeeze(1);
  mixed_.weights = weights_for(components, rows);
  mixed_.components = std::move(components);
  return mixture_.mix(mixed_.components, mixed_.weights);
}

// Returns the weights for a window's rows, where each row is learned before the next. For the next
// tokens of streams it returns each stream's weights.
MixtureWeights StreamMemory::weights_for(const Components& components, const VocabularyRows& rows) {
  if (online_.empty()) return mixture_.weights(components.gates);
  if (rows.window != nullptr && !held_)
    return online_[0].learn(
        at_tokens(components, rows.window->targets.slice(0, rows.begin, rows.end)));
  std::vector<std::vector<double>> weights;
  const std::int64_t count = rows.window != nullptr ? rows.end - rows.begin : rows_;
  for (const auto& buckets : online_[0].buckets(components.gates, count))
    weights.push_back(online_[rows.window != nullptr ? 0 : weights.size()].weights(buckets));
  return to_mixture(weights);
}

void StreamMemory::take_weights(std::int64_t row, const OnlineWeights& weights) {
  online_[static_cast<std::size_t>(row)] = weights;
}

RowWeights StreamMemory::weights_of(std::size_t source) const {
  if (mixed_.given.empty()) {
    mixed_.given = mixture_.given(mixed_.components, mixed_.weights);
    mixed_.log_z = mixed_.log_z.to(torch::kCPU, torch::kFloat64);
  }
  std::vector<Tensor> log_z;  // minus the bias of each part
  for (const auto& part : plan_.joint(*plan_.kinds()[source]))
    log_z.push_back(mixed_.log_z - part.bias);
  const auto first = mixed_.given.begin() + 1;
  return {mixed_.given[0], std::move(log_z),
      {first + static_cast<std::ptrdiff_t>(mixed_.begins[source]),
          first + static_cast<std::ptrdiff_t>(mixed_.begins[source + 1])}};
}

std::vector<StoreShare> StreamMemory::store_shares(const RowToken& of) const {
  std::vector<StoreShare> all;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const auto own = sources_[i]->entries(of, weights_of(i));
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

Evidence StreamMemory::evidence(
    const RowToken& of, std::int64_t most, std::int64_t context_tokens) const {
  Evidence all;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Evidence own = sources_[i]->evidence(of, weights_of(i), most, context_tokens);
    all.share += own.share;
    std::move(own.contexts.begin(), own.contexts.end(), std::back_inserter(all.contexts));
    std::move(own.models.begin(), own.models.end(), std::back_inserter(all.models));
  }
  std::ranges::stable_sort(all.contexts, std::greater(), [](const auto& of) { return of.share; });
  all.contexts.resize(std::min(all.contexts.size(), static_cast<std::size_t>(most)));
  return all;
}

Tensor StreamMemory::source_shares(
    const Tensor& tokens, const Tensor& log_probs, const Window* window, std::int64_t begin) const {
  const Tensor log_prob = log_probs.to(torch::kCPU, torch::kFloat64).contiguous();
  const Tensor targets = tokens.to(torch::kCPU, torch::kInt64).contiguous();
  std::vector<Tensor> shares{torch::ones_like(log_prob)};  // the vocabulary has the rest
  const Components found = at_tokens(mixed_.components, targets);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const RowWeights weights = weights_of(i);
    auto parts = sources_[i]->shares(window, begin, targets, log_prob, weights);
    const std::size_t whole = parts.empty() ? weights.separate.size() : 0;
    for (std::size_t j = 0; j < whole; ++j) {
      const Tensor one = found.separate[mixed_.begins[i] + j].to(torch::kCPU, torch::kFloat64);
      parts.push_back((weights.separate[j] * (one - log_prob).exp()).nan_to_num(0));
    }
    for (auto& part : parts) {
      shares[0] = shares[0] - part;
      shares.push_back(std::move(part));
    }
  }
  shares[0] = shares[0].clamp_min(0);
  return torch::stack(shares, 1);
}

void StreamMemory::read(std::int64_t row, std::span<const std::int64_t> tokens) {
  for (const auto& source : sources_) source->read(row, tokens);
  if (online_.empty() || !plan_.weights_follow || !mixed_.components.joint.defined()) return;
  // Learns from the label of the row that log_probs() returned last.
  const auto own = taken_rows(
      mixed_.components, [row](const Tensor& rows) { return rows.slice(0, row, row + 1); });
  online_[static_cast<std::size_t>(row)].learn(
      at_tokens(own, torch::tensor({tokens[0]}, torch::kInt64)));
}

void StreamMemory::append(
    const Tensor& f, const Tensor& g, const Tensor& labels, const nn::TokenPositions& place) {
  const auto by_step = [this](const Tensor& tensor) { return tensor.unflatten(0, {-1, rows_}); };
  const nn::TokenPositions places{
      by_step(place.run), by_step(place.segment), by_step(place.position)};
  for (const auto& source : sources_)
    source->append(by_step(f), by_step(g), by_step(labels), places);
}

void StreamMemory::select(const Tensor& rows) {
  rows_ = rows.size(0);
  for (const auto& source : sources_) source->select(rows);
  if (online_.empty()) return;
  online_ = selected(online_, rows);
  if (!plan_.weights_follow || !mixed_.components.joint.defined()) return;
  mixed_.components =  // for the next tokens
      taken_rows(mixed_.components,
          [&](const Tensor& of) { return of.index_select(0, rows.to(of.device())); });
}

void StreamMemory::join(const StreamMemory& other) {
  for (std::size_t i = 0; i < sources_.size(); ++i)
    sources_[i]->join(*other.sources_[i], rows_, other.rows_);
  rows_ += other.rows_;
  online_.insert(online_.end(), other.online_.begin(), other.online_.end());
  mixed_ = {};  // of the own streams only
}

void StreamMemory::clear_sources() {
  for (const auto& source : sources_) source->clear();
}

void StreamMemory::clear() {
  clear_sources();
  for (auto& weights : online_) weights = OnlineWeights(mixture_);
}

SearchCounts StreamMemory::searches() const {
  SearchCounts counts;
  for (const auto& source : sources_) counts.add(source->searches());
  return counts;
}

WeightsLearner::WeightsLearner(const MemoryPlan& plan, std::int64_t window, const nn::Model& model)
    : memory_(plan, window, /*streaming=*/true, model),
      block_(std::max<std::int64_t>(
          1, kLearnBytes / (8 * std::max<std::int64_t>(1, model.vocabulary)))) {}

std::int64_t WeightsLearner::learn(nn::Head& head, const std::vector<std::int64_t>& tokens,
    const nn::Hidden& hidden, const EnsembleRows& ensemble, std::int64_t most) {
  const torch::NoGradGuard no_gradient;
  const std::int64_t known = std::ssize(tokens) - 1, from = scored_;
  const std::int64_t to = std::min(known, from + std::min(most, known));
  Window rows;
  const auto own = hidden.slice(0, known);
  rows.output = own.output, rows.key = own.key;
  rows.targets = nn::upload(torch::tensor(tokens).slice(0, 1), own.output.device());
  const torch::Tensor zeros = torch::zeros({known}, torch::kInt64);
  rows.place = {zeros, zeros, torch::arange(known)};
  rows.before = {tokens[0]};
  while (scored_ < to) {
    const std::int64_t end = std::min(scored_ + block_, to);
    memory_.log_probs(head, rows, scored_, end, nullptr, 0, ensemble(scored_, end));
    scored_ = end;
  }
  return to - from;
}

}  // namespace infer
