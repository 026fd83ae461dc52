#include "infer/score/scorer.h"

#include "nn/base/upload.h"

namespace infer {
namespace {

constexpr std::uint64_t kFirstLook = 1024;  // in tokens

// Enables evaluation mode and disables gradients during its lifetime. (InferenceMode is unsuitable:
// tables that a model makes on first use must also serve training later.)
class Evaluating {
 public:
  explicit Evaluating(nn::Model& model) : model_(model), training_(model.is_training()) {
    model_.eval();
  }
  ~Evaluating() { model_.train(training_); }
  Evaluating(Evaluating&&) = delete;

 private:
  nn::Model& model_;
  bool training_;
  torch::NoGradGuard no_gradient_;
};

// Counts source bytes and words of the scored text; see Totals.
void count_text(Totals& totals, const shard::Dataset& data, const WindowPlan& windows) {
  const auto& documents = data.documents();
  const auto shares = scored_shares(windows, documents, data.size());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    totals.bytes += shares[i] * static_cast<double>(documents.bytes[i]);
    totals.words += shares[i] * static_cast<double>(documents.words[i]);
  }
}

// The batches of a part: it runs from batch `first` on and scores groups [begin, end).
struct Stretch {
  std::int64_t first = 0, begin = 0, end = std::numeric_limits<std::int64_t>::max();
  std::int64_t groups = 0;  // over all parts; not counted for the whole
};

// Returns the batches of a part. It begins earlier than the part's own batches, as far back as
// memories `reach` in the stream of its first window.
Stretch stretch_of(
    const core::Part& part, const std::function<WindowBatches()>& batches, std::int64_t reach) {
  Stretch stretch;
  if (part.whole()) return stretch;
  std::int64_t groups = 0;
  for (auto all = batches(); const auto batch = all.next();) groups = batch->group + 1;
  stretch.groups = groups;
  stretch.begin = part.begin(groups);
  stretch.end = part.end(groups);
  struct Before {
    std::int64_t tokens;  // new tokens
    std::int64_t stream;  // the last stream that begins in it, or -1
  };
  std::vector<Before> before;
  for (auto all = batches(); const auto batch = all.next();) {
    if (batch->group == stretch.begin) {
      stretch.first = std::ssize(before);
      const Span& own = batch->spans[0];
      bool begun = own.fresh;
      for (std::int64_t left = reach; left > 0 && !begun && stretch.first > 0;) {
        const auto& [tokens, stream] = before[static_cast<std::size_t>(--stretch.first)];
        left -= tokens;
        begun = stream == own.stream;
      }
      break;
    }
    before.push_back({0, -1});
    for (const Span& span : batch->spans) {
      if (span.fresh) before.back().stream = span.stream;
      before.back().tokens += span.length - span.first_new;
    }
  }
  return stretch;
}

// Windows after the forward pass and the head. Their memories come next.
struct Forwarded {
  std::vector<Span> spans;
  nn::Batch host, batch;
  nn::Hidden hidden;
  HeadRows head;                                 // of the new rows of all spans
  StreamMemory::Asked asked;                     // of the same rows
  std::vector<StreamMemory::Recalled> recalled;  // of each span
  nn::Download come;                             // results() in transfer to the host
  bool own = true;                               // false: the part only remembers these windows

  /// Returns the results on the model's device, in the order of the download.
  std::vector<Tensor*> results() {
    std::vector<Tensor*> all{&head.log_prob, &head.log_z, &head.confidence};
    for (auto& of : recalled)
      for (auto& source : of)
        for (Tensor& tensor : source)
          if (tensor.defined() && tensor.device() == head.log_prob.device()) all.push_back(&tensor);
    std::erase_if(all, [](const Tensor* tensor) { return !tensor->defined(); });
    return all;
  }
  void send() {
    const auto all = core::mapped(results(), [](const Tensor* tensor) { return *tensor; });
    come = nn::Download(all, torch::kFloat64);
  }
  void receive() {
    const auto all = come.get();
    auto tensor = all.begin();
    for (Tensor* const result : results()) *result = *tensor++;
  }
  /// Returns whether a source is still searching.
  bool looking() const {
    return std::ranges::any_of(asked, [](const auto& found) { return found != nullptr; });
  }
};

// Returns the rows of windows with several passages: the mixture over the passages, with the
// log-sum-exp of the first.
HeadRows mixed_rows(nn::Head& head, const nn::Hidden& hidden, const nn::Targets& targets,
    const PrefixedBatch& prefixed, const std::vector<Span>& spans) {
  std::vector<Tensor> f, labels, host_labels;
  std::int64_t first = 0;
  for (std::size_t row = 0, last = 0; row < prefixed.window.size(); ++row) {
    const auto window = static_cast<std::size_t>(prefixed.window[row]);
    if (window != last) first += spans[last].length - spans[last].first_scored;
    last = window;
    const Span& span = spans[window];
    const std::int64_t before = prefixed.before[row];
    f.push_back(hidden.output[static_cast<std::int64_t>(row)].slice(
        0, before + span.first_scored, before + span.length));
    const auto own = targets.slice(first, first + span.length - span.first_scored);
    labels.push_back(own.there), host_labels.push_back(own.host);
  }
  const HeadRows all =
      head_rows(head, torch::cat(f), {torch::cat(labels), torch::cat(host_labels)});
  std::vector<Tensor> log_prob, log_z;
  std::int64_t begin = 0;
  for (std::size_t row = 0; row < prefixed.window.size();) {
    const auto window = prefixed.window[row];
    const Span& span = spans[static_cast<std::size_t>(window)];
    const std::int64_t n = span.length - span.first_scored;
    log_z.push_back(all.log_z.slice(0, begin, begin + n));
    std::vector<Tensor> own;
    for (; row < prefixed.window.size() && prefixed.window[row] == window; ++row, begin += n)
      own.push_back(all.log_prob.slice(0, begin, begin + n) + std::log(prefixed.weight[row]));
    log_prob.push_back(own.size() == 1 ? own[0] : torch::logsumexp(torch::stack(own), 0));
  }
  return {torch::cat(log_prob), torch::cat(log_z)};
}

class Walk {
 public:
  Walk(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
      const MemoryPlan& memory, const Grid& grid, torch::Device device, const Callbacks& watch,
      bool mixed)
      : model_(model), data_(data), windows_(windows), own_(data.fingerprints()),
        plan_(memory.without(own_)), device_(device), watch_(watch), mixed_(mixed),
        sorted_(windows.pairs && !memory.has(&KindFacts::in_order)),
        memory_(plan_, windows.window, windows.carried, model, 1, grid) {
    memory_.announce(data);
    if (windows.retrieve.any()) prefixes_.emplace(windows, data);
  }

  Totals run() {
    const auto start = std::chrono::steady_clock::now();
    const auto batches = [this] { return WindowBatches(windows_, data_, sorted_); };
    const auto [first, begin, end, groups] = stretch_of(watch_.part, batches, plan_.reach());
    if (watch_.cut) watch_.cut(begin, std::min(end, groups), groups);
    auto all = batches();
    std::int64_t number = 0;
    while (auto batch = all.next()) {
      if (batch->group >= end) break;
      if (number++ < first) continue;
      const bool own = batch->group >= begin;
      if (windows_.dynamic.on) pass_and_learn(std::move(batch->spans), own);
      else pass(forward(std::move(batch->spans), own));
      if (sorted_ && batch->last) {
        score_waiting();
        give_kept();
      }
    }
    score_waiting();
    count_text(totals_, data_, windows_);
    totals_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return totals_;
  }

 private:
  // Reports in the order of the stream what was scored in the order of the lengths.
  void give_kept() {
    std::ranges::sort(kept_, {}, &Scored::first);
    for (const Scored& scored : kept_) watch_.scored(scored);
    kept_.clear();
  }

  // Runs one forward pass for all windows and one call of the head. Stores are searched meanwhile
  // and during the next windows' forward pass.
  Forwarded forward(std::vector<Span> spans, bool own) {
    Forwarded done;
    done.own = own;
    done.spans = std::move(spans);
    std::vector<Prefixes> prefixes;
    if (prefixes_) prefixes = find_prefixes(done.spans, own);
    done.host = batch_of(done.spans, data_, windows_, model_.vocabulary);
    done.batch = done.host.to(device_);
    if (prefixes_) {
      encode_behind(prefixes, done);
    } else {
      done.hidden = forward_windows(model_, windows_, done.batch, done.spans[0], state_);
    }
    if (!own) {
      for (std::size_t i = 0; i < done.spans.size(); ++i)
        remember(done, static_cast<std::int64_t>(i));
      return done;
    }
    const Tensor queries = scored_rows(done.hidden.key, done.spans);
    if (!memory_.asks_confidence()) look_up(done, queries);
    if (!done.head.log_prob.defined())
      done.head = head_rows(*model_.head, scored_rows(done.hidden.output, done.spans),
          targets_of(done), plan_.gates.any());
    if (memory_.asks_confidence()) look_up(done, queries);
    for (std::size_t i = 0; i < done.spans.size(); ++i)
      done.recalled.push_back(recall(done, static_cast<std::int64_t>(i)));
    done.send();
    return done;
  }

  static nn::Targets targets_of(const Forwarded& done) {
    return {
        scored_rows(done.batch.targets, done.spans), scored_rows(done.host.targets, done.spans)};
  }

  std::vector<Prefixes> find_prefixes(std::vector<Span>& spans, bool own) {
    auto prefixes = prefixes_->find(spans);
    for (std::size_t i = 0; own && watch_.retrieved && i < spans.size(); ++i)
      watch_.retrieved({spans[i].target + static_cast<std::uint64_t>(spans[i].first_scored),
          spans[i].length - spans[i].first_scored, prefixes[i]});
    return prefixes;
  }

  // Memory keys and queries come from the windows encoded after their top passage.
  void encode_behind(const std::vector<Prefixes>& prefixes, Forwarded& done) {
    const auto lengths = core::mapped(done.spans, &Span::length);
    const PrefixedBatch prefixed = prepend(done.host, lengths, prefixes);
    const nn::Hidden hidden = model_.architecture->forward(prefixed.batch.to(device_), nullptr);
    done.hidden = without_prefixes(hidden, prefixed, lengths);
    if (done.own && windows_.retrieve.mix > 1)
      done.head = mixed_rows(*model_.head, hidden, targets_of(done), prefixed, done.spans);
  }

  // Each window is one stretch.
  void look_up(Forwarded& done, const Tensor& queries) {
    Lookup lookup{
        queries, scored_rows(done.host.targets, done.spans), {}, done.head.confidence, own_};
    for (const Span& span : done.spans) lookup.lengths.push_back(span.length - span.first_scored);
    lookup.background = true;
    done.asked = memory_.look_up(lookup);
  }

  // Scores a window, then takes a step on it from the State before it.
  void pass_and_learn(std::vector<Span> spans, bool own) {
    const Span span = spans[0];
    if (span.fresh) learner_.emplace(model_, windows_.dynamic);
    nn::State before = state_;
    for (auto& [name, tensor] : before.tensors) tensor = tensor.clone();
    Forwarded done = forward(std::move(spans), own);
    const nn::Batch text = done.batch;
    pass(std::move(done));
    learner_->learn(text, [&] { return forward_windows(model_, windows_, text, span, before); });
  }

  // If a search is under way or a device computes, these windows wait until the next windows'
  // forward pass.
  void pass(Forwarded done) {
    if (!done.own) return;
    if (!done.looking() && device_.is_cpu()) {
      score(done);
      return;
    }
    std::optional<Forwarded> before = std::exchange(waiting_, std::move(done));
    if (before) score(*before);
  }

  void score_waiting() {
    if (auto last = std::exchange(waiting_, std::nullopt)) score(*last);
  }

  // Scores windows in the order of the stream.
  void score(Forwarded& done) {
    done.receive();
    for (const auto& found : done.asked)
      if (const auto counts = found ? found->counts() : std::nullopt) {
        if (!totals_.searches) totals_.searches.emplace();
        totals_.searches->add(*counts);
      }
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < done.spans.size(); ++i) {
      const std::int64_t end = begin + done.spans[i].length - done.spans[i].first_scored;
      score(done, static_cast<std::int64_t>(i), done.head.slice(begin, end), begin);
      begin = end;
    }
    if (watch_.progress) watch_.progress(totals_.tokens);
  }

  Window window_of(const Forwarded& done, std::int64_t row) const {
    const Span& span = done.spans[static_cast<std::size_t>(row)];
    const auto whole = [&](const Tensor& rows) { return rows[row].slice(0, 0, span.length); };
    const nn::TokenPositions& place = done.host.place;
    return {whole(done.hidden.output), whole(done.hidden.key), whole(done.batch.targets),
        nn::TokenPositions{place.run[row], place.segment[row], place.position[row]}.slice(
            0, span.length),
        span.first_scored, span.first_new};
  }

  std::vector<std::int64_t> tokens(std::uint64_t begin, std::uint64_t end) const {
    std::vector<std::uint32_t> read(end - begin);
    data_.read(begin, std::span(read));
    return {read.begin(), read.end()};
  }

  // Returns the tokens before the window's first scored target that sources have not read. For a
  // part's first window it returns as many earlier tokens as sources need.
  std::vector<std::int64_t> before(const Forwarded& done, std::int64_t row) {
    const Span& span = done.spans[static_cast<std::size_t>(row)];
    const std::uint64_t end = span.target + static_cast<std::uint64_t>(span.first_scored);
    const auto begun = std::exchange(read_, span.target + static_cast<std::uint64_t>(span.length));
    if (span.fresh) {
      auto read = tokens(span.target, end);
      read.insert(read.begin(), done.host.inputs[row][0].item<std::int64_t>());
      return read;
    }
    if (begun) return tokens(*begun, end);
    const bool whole = !windows_.by_document && !windows_.pairs;
    const std::uint64_t first =
        whole || span.stream == 0
            ? 0
            : data_.documents().end[static_cast<std::size_t>(span.stream) - 1];
    for (std::uint64_t n = kFirstLook;; n *= 2) {
      auto read = tokens(std::max(first, end - std::min(n, end)), end);
      const bool more = read.size() == n && plan_.wants_more(read);
      if (read.size() < n && windows_.beginning >= 0) read.insert(read.begin(), windows_.beginning);
      if (!more) return read;
    }
  }

  GateTotals& gate_totals() {
    if (!totals_.gates) totals_.gates.emplace();
    return *totals_.gates;
  }

  // Returns the nats of the same tokens at constant shares if these are known.
  double compare(const Scored& scored, double counted) {
    GateTotals& gates = gate_totals();
    gates.compared = !plan_.gates.skips();
    if (!gates.compared) return 0;
    const Components components = scored.parts.at(plan_);
    const Mixture& mixture = memory_.mixture();
    const Tensor constant = mixture.mix(components, mixture.constant(components.gates));
    const auto sum = [&](const Tensor& values) {
      return windows_.learned ? (values * scored.parts.weight).sum().item<double>()
                              : values.mean().item<double>() * counted;
    };
    const double nats = -sum(constant);
    gates.constant_nats += nats;
    const Tensor worse = (scored.log_prob < constant).to(torch::kFloat64);
    gates.worse += static_cast<std::uint64_t>(std::llround(sum(worse)));
    return nats;
  }

  void remember(const Forwarded& done, std::int64_t row) {
    if (done.spans[static_cast<std::size_t>(row)].fresh) memory_.clear_sources();
    memory_.remember(window_of(done, row));
  }

  // Returns what the memories have for a window. The memories then store the window.
  StreamMemory::Recalled recall(const Forwarded& done, std::int64_t row) {
    if (done.spans[static_cast<std::size_t>(row)].fresh) memory_.clear_sources();
    Window window = window_of(done, row);
    if (plan_.has(&KindFacts::reads)) window.before = before(done, row);
    return memory_.recall(window, scored_targets(done, row));
  }

  // Returns weight 1 for tokens that the text's marks select, else 0.
  Tensor learned(std::uint64_t first, std::int64_t n) const {
    Tensor weight = torch::zeros({n}, torch::kFloat64);
    for (const auto& mark :
        shard::marks_within(data_.documents(), first, first + static_cast<std::uint64_t>(n)))
      weight.slice(0, static_cast<std::int64_t>(mark.begin), static_cast<std::int64_t>(mark.end))
          .fill_(1);
    return weight;
  }

  static Tensor scored_targets(const Forwarded& done, std::int64_t row) {
    const Span& span = done.spans[static_cast<std::size_t>(row)];
    return done.host.targets[row].slice(0, span.first_scored, span.length);
  }

  void score(const Forwarded& done, std::int64_t row, const HeadRows& head, std::int64_t offset) {
    const Span& span = done.spans[static_cast<std::size_t>(row)];
    Scored scored;
    scored.first = span.target + static_cast<std::uint64_t>(span.first_scored);
    scored.targets = scored_targets(done, row);
    scored.fresh = span.fresh;
    scored.parts = memory_.score(head, scored.targets, done.recalled[static_cast<std::size_t>(row)],
        done.asked, offset, scored.first);
    const std::int64_t tokens = span.length - span.first_scored;
    auto counted = static_cast<double>(span.counted);
    if (windows_.layout.one_less || windows_.learned)
      scored.parts.weight =
          torch::full({tokens}, counted / static_cast<double>(tokens), torch::kFloat64);
    if (windows_.learned) {
      scored.parts.weight.mul_(learned(scored.first, tokens));
      counted = scored.parts.weight.sum().item<double>();
    }
    totals_.tokens += static_cast<std::uint64_t>(std::llround(counted));
    if (mixed_) {
      scored.log_prob = memory_.mix(scored.parts, scored.fresh);
      double nats = -scored.log_prob.sum().item<double>();
      if (windows_.learned) nats = -(scored.log_prob * scored.parts.weight).sum().item<double>();
      else if (span.counted != tokens)
        nats *= static_cast<double>(span.counted) / static_cast<double>(tokens);
      totals_.nats += nats;
      const double constant_nats = plan_.gates.any() ? compare(scored, counted) : 0;
      if (watch_.added) watch_.added(nats, constant_nats);
    }
    if (watch_.scored) {
      if (sorted_) {
        kept_.push_back(std::move(scored));
      } else {
        watch_.scored(scored);
      }
    }
  }

  nn::Model& model_;
  const shard::Dataset& data_;
  const WindowPlan& windows_;
  shard::Fingerprints own_;  // of the data
  MemoryPlan plan_;
  torch::Device device_;
  const Callbacks& watch_;
  bool mixed_, sorted_;
  StreamMemory memory_;
  std::optional<std::uint64_t> read_;  // end of the elements that sources have read
  nn::State state_;
  std::optional<DynamicWeights> learner_;
  std::optional<WindowPrefixes> prefixes_;
  Totals totals_;
  std::vector<Scored> kept_;
  std::optional<Forwarded> waiting_;  // last: its searches use the other members
};

Totals run(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
    const MemoryPlan& memory, const Grid& grid, torch::Device device, const Callbacks& watch,
    bool mixed) {
  shard::expect_kind(
      data.header(), {windows.pairs ? shard::Kind::pairs : shard::Kind::tokens}, data.name());
  memory.expect_probabilities();
  const Evaluating evaluating(model);
  Totals totals = Walk(model, data, windows, memory, grid, device, watch, mixed).run();
  if (totals.tokens == 0 && watch.part.whole() && windows.learned)
    core::bad_data("{}: nothing to score; no token after the first is marked", data.name());
  if (totals.tokens == 0 && watch.part.whole())
    core::bad_data("{}: nothing to score; a {} needs at least two tokens", data.name(),
        windows.by_document ? "document" : "text");
  if (mixed && !std::isfinite(totals.nats))
    core::bad_data("{}: the loss is not finite; {}", data.name(), windows.dynamic.doubt());
  return totals;
}

}  // namespace

Totals score(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
    const MemoryPlan& memory, torch::Device device, const Callbacks& watch) {
  return run(model, data, windows, memory, {}, device, watch, true);
}

Totals walk(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
    const MemoryPlan& memory, const Grid& grid, torch::Device device, const Callbacks& watch) {
  return run(model, data, windows, memory, grid, device, watch, false);
}

}  // namespace infer
