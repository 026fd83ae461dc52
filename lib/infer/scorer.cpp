#include "infer/scorer.h"

#include <chrono>
#include <cmath>
#include <future>
#include <optional>

#include "core/error.h"
#include "infer/stores.h"
#include "infer/windows.h"

namespace infer {
namespace {

using core::Code;
using core::fail;
using torch::Tensor;

// Evaluation mode and no gradient while it lives. (Not InferenceMode: tables that a model makes on
// first use must serve training afterwards.)
class Evaluating {
 public:
  explicit Evaluating(nn::Model& model) : model_(model), training_(model.is_training()) {
    model_.eval();
  }
  ~Evaluating() { model_.train(training_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  nn::Model& model_;
  bool training_;
  torch::NoGradGuard no_gradient_;
};

// Source bytes and words of what is scored; see Totals.
void count_text(Totals& totals, const shard::Documents& documents, const WindowOptions& windows) {
  std::uint64_t begin = 0;
  bool first = true;  // of a stream
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto n = static_cast<double>(documents.end[i] - begin);
    begin = documents.end[i];
    if (windows.pairs && i % 2 == 0) continue;
    double share = 1;
    if (n > 0) {
      if (windows.beginning < 0 && (first || windows.by_document())) share = (n - 1) / n;
      first = false;
    }
    totals.bytes += share * static_cast<double>(documents.bytes[i]);
    totals.words += share * static_cast<double>(documents.words[i]);
  }
}

// Windows that went through the model and the head; their memories come next.
struct Forwarded {
  std::vector<Span> spans;
  nn::Batch host, batch;
  nn::Hidden hidden;
  HeadRows head;                                // of the new rows of all spans
  std::future<std::vector<Neighbours>> search;  // of the same rows, one result for each nprobe
};

// The new rows of each window, one after the other.
Tensor new_rows(const Tensor& rows, const std::vector<Span>& spans) {
  std::vector<Tensor> pieces;
  for (std::size_t i = 0; i < spans.size(); ++i)
    pieces.push_back(
        rows[static_cast<std::int64_t>(i)].slice(0, spans[i].first_scored, spans[i].length));
  return pieces.size() == 1 ? pieces[0] : torch::cat(pieces);
}

class Walk {
 public:
  Walk(nn::Model& model, const shard::Dataset& data, const WindowOptions& windows,
       const MemoryOptions& options, const MemoryGrid& grid, torch::Device device,
       const Watch& watch, bool mixed)
      : model_(model),
        data_(data),
        windows_(windows),
        options_(options),
        device_(device),
        watch_(watch),
        mixed_(mixed),
        carried_(windows.carry == "on"),
        memory_(options, windows.window, carried_, model, device, 1, grid),
        own_(data.fingerprint().hex()),
        nprobes_(grid.nprobes) {
    if (nprobes_.empty()) nprobes_ = {options.stores.nprobe};
  }

  Totals run() {
    const auto start = std::chrono::steady_clock::now();
    Windows all(windows_, data_.documents(), data_.size());
    std::vector<Span> batch;
    std::int64_t longest = 0;
    while (const auto span = all.next()) {
      longest = std::max(longest, span->length);
      const auto tokens = longest * static_cast<std::int64_t>(batch.size() + 1);
      if (!batch.empty() && (carried_ || tokens > windows_.batch_tokens)) {
        pass(forward(std::exchange(batch, {})));
        longest = span->length;
      }
      batch.push_back(*span);
    }
    if (!batch.empty()) pass(forward(std::move(batch)));
    if (waiting_) score(*waiting_);
    count_text(totals_, data_.documents(), windows_);
    totals_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return totals_;
  }

 private:
  nn::Hidden encode(const nn::Batch& batch, const Span& first) {
    if (!carried_) return model_.architecture->forward(batch, nullptr);
    if (!first.fresh && model_.architecture->carry() == nn::Carry::forget)
      model_.architecture->forget(state_, windows_.window - windows_.stride);
    return model_.architecture->forward(batch, &state_);
  }

  // One forward for all windows and one call of the head; the stores are searched meanwhile and
  // while the next windows go forward.
  Forwarded forward(std::vector<Span> spans) {
    Forwarded done;
    done.spans = std::move(spans);
    done.host = batch_of(done.spans, data_, windows_.beginning, model_.vocabulary);
    done.batch = done.host.to(device_);
    done.hidden = encode(done.batch, done.spans[0]);
    if (options_.stores.any()) done.search = search(new_rows(done.hidden.g, done.spans));
    done.head = head_rows(*model_.head, new_rows(done.hidden.f, done.spans),
                          new_rows(done.batch.targets, done.spans));
    return done;
  }

  std::future<std::vector<Neighbours>> search(const Tensor& queries) const {
    return std::async(std::launch::async, [this, queries] {
      at::init_num_threads();  // as many here as everywhere
      const StoreOptions& stores = options_.stores;
      std::vector<Neighbours> found;
      for (const std::int64_t nprobe : nprobes_)
        found.push_back(stores.opened->search(queries, stores.k, nprobe, stores.rescore, own_));
      return found;
    });
  }

  // Where a search is under way, the memories of these windows wait until the next went forward.
  void pass(Forwarded done) {
    if (!done.search.valid()) {
      score(done);
      return;
    }
    std::optional<Forwarded> before = std::exchange(waiting_, std::move(done));
    if (before) score(*before);
  }

  // The memories, in the order of the stream.
  void score(Forwarded& done) {
    std::vector<Neighbours> found;
    if (done.search.valid()) found = done.search.get();
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < done.spans.size(); ++i) {
      const std::int64_t end = begin + done.spans[i].length - done.spans[i].first_scored;
      std::vector<Neighbours> own;
      for (const auto& neighbours : found) own.push_back(neighbours.slice(begin, end));
      score(done, static_cast<std::int64_t>(i),
            {done.head.log_prob.slice(0, begin, end), done.head.log_z.slice(0, begin, end)}, own);
      begin = end;
    }
    if (watch_.progress) watch_.progress(totals_.tokens);
  }

  void score(const Forwarded& done, std::int64_t row, const HeadRows& head,
             const std::vector<Neighbours>& found) {
    const Span& span = done.spans[static_cast<std::size_t>(row)];
    const nn::Batch &host = done.host, &batch = done.batch;
    const nn::Hidden& hidden = done.hidden;
    if (span.fresh) memory_.clear();
    Window window;
    window.f = hidden.f[row].slice(0, 0, span.length);
    window.g = hidden.g[row].slice(0, 0, span.length);
    window.targets = batch.targets[row].slice(0, 0, span.length);
    const nn::Place& place = host.place;
    window.place =
        nn::Place{place.run[row], place.segment[row], place.position[row]}.slice(0, span.length);
    window.first_scored = span.first_scored;
    Scored scored;
    scored.first = span.target + static_cast<std::uint64_t>(span.first_scored);
    scored.parts = memory_.score(head, window, found);
    if (!found.empty()) scored.found = &found[0];
    const std::int64_t tokens = span.length - span.first_scored;
    totals_.tokens += static_cast<std::uint64_t>(tokens);
    if (mixed_) {
      scored.log_prob = mix(scored.parts, options_);
      totals_.nats -= scored.log_prob.sum().item<double>();
    }
    if (watch_.scored) {
      scored.targets = host.targets[row].slice(0, span.first_scored, span.length);
      watch_.scored(scored);
    }
  }

  nn::Model& model_;
  const shard::Dataset& data_;
  const WindowOptions& windows_;
  const MemoryOptions& options_;
  torch::Device device_;
  const Watch& watch_;
  bool mixed_, carried_;
  TestMemory memory_;
  std::string own_;  // the data's fingerprint
  std::vector<std::int64_t> nprobes_;
  nn::State state_;
  Totals totals_;
  std::optional<Forwarded> waiting_;  // last: its search uses the others
};

Totals run(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
           MemoryOptions memory, const MemoryGrid& grid, torch::Device device, const Watch& watch,
           bool mixed) {
  shard::expect_kind(data.header(), {windows.pairs ? shard::Kind::pairs : shard::Kind::tokens},
                     data.name());
  resolve(windows, memory, model);
  if (memory.stores.combine == "released")
    fail(Code::usage,
         "--datastore-combine released: it gives scores to search with, and no "
         "probabilities");
  if (memory.stores.any() && !memory.stores.opened)
    fail(Code::bug, "the stores of {} are not open", memory.stores.folders[0]);
  const Evaluating evaluating(model);
  Totals totals = Walk(model, data, windows, memory, grid, device, watch, mixed).run();
  if (totals.tokens == 0)
    fail(Code::bad_data, "{}: nothing to score; it takes two tokens of one {} at least",
         data.name(), windows.by_document() ? "document" : "text");
  if (mixed && !std::isfinite(totals.nats))
    fail(Code::bad_data, "{}: the loss is not finite; the model's weights may be damaged",
         data.name());
  return totals;
}

}  // namespace

Totals score(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
             MemoryOptions memory, torch::Device device, const Watch& watch) {
  return run(model, data, std::move(windows), std::move(memory), {}, device, watch, true);
}

Totals walk(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
            MemoryOptions memory, const MemoryGrid& grid, torch::Device device,
            const Watch& watch) {
  return run(model, data, std::move(windows), std::move(memory), grid, device, watch, false);
}

}  // namespace infer
