#pragma once
// Memories at test time: the sources of a plan, at work on streams, and what they give together.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "infer/memory/mixture.h"
#include "infer/memory/online.h"
#include "infer/memory/parts.h"
#include "infer/sources/head_rows.h"
#include "infer/sources/memory_plan.h"
#include "infer/sources/source.h"
#include "nn/base/head.h"
#include "nn/base/torch.h"

namespace infer {

/// Remembers streams and scores what follows. Not thread safe; keeps keys in float32 (or float64).
class StreamMemory {
 public:
  /// `window` tokens. `streaming`: blocks follow each other without context, and local is the last
  /// `window` positions, whatever the block (log_probs needs it: it sees the ring only). `rows`:
  /// streams that advance together, told apart by their run. `grid`: of numbers that are tuned.
  StreamMemory(const MemoryPlan& plan, std::int64_t window, bool streaming, const nn::Model& model,
               std::int64_t rows = 1, const Grid& grid = {});

  /// What all sources look for, of a batch of windows; null where one looks for nothing.
  using Asked = std::vector<std::unique_ptr<Found>>;
  Asked ask(const Ask& ask);
  /// Whether ask() needs the confidence.
  bool asks_confidence() const { return plan_.gates.skips(); }
  /// Elements of this data are scored from here on.
  void read_beside(const shard::Dataset& data);

  /// What there is for the scored rows of a window (of one stream), whose targets these are, (R) on
  /// the CPU, a list for each source; the new rows are then remembered. The host waits for nothing.
  using Recalled = std::vector<std::vector<torch::Tensor>>;
  Recalled recall(const Window& window, const torch::Tensor& targets);
  /// The parts of these rows. What the head gave for them and what was recalled are float64 on the
  /// CPU. `asked`: of their batch, of which they are the rows from `offset` on; `first`: the first
  /// target's element of the data.
  Parts score(const HeadRows& head, const torch::Tensor& targets, const Recalled& recalled,
              const Asked& asked, std::int64_t offset, std::uint64_t first);

  /// log p of these rows by all sources together, (R): what score() gave, in the order of the
  /// stream. Weights that are learned learn of them.
  torch::Tensor mix(const Parts& parts);

  /// log p of every word, by all sources together: f (R, d_model), g (R, d_key) and their place
  /// (R), positions whose labels are not known yet. Stores are searched here. `beside`: what each
  /// model that reads beside gives, (R, V of its own). Returns (R, V), float32 or float64.
  torch::Tensor log_probs(nn::Head& head, const torch::Tensor& f, const torch::Tensor& g,
                          const nn::Place& place, const std::vector<torch::Tensor>& beside = {});
  /// The same at rows [begin, end) of a window, of which nothing is remembered but by what reads
  /// tokens: it reads the targets, so that rows come in their order from the first that is scored.
  /// `asked`: what ask() gave for their batch, of which row `begin` is the row `offset`; null: it
  /// is asked here.
  torch::Tensor log_probs(nn::Head& head, const Window& window, std::int64_t begin,
                          std::int64_t end, const Asked* asked = nullptr, std::int64_t offset = 0,
                          const std::vector<torch::Tensor>& beside = {});
  /// After log_probs(): what each entry of the stores with the label `token` gave of row's
  /// p(token), whose logarithm is `log_prob`.
  std::vector<StoreShare> store_shares(std::int64_t row, std::int64_t token, double log_prob) const;
  /// The same of all that can be cited: at most `most` contexts of each source, with
  /// `context_tokens` tokens of each.
  Evidence evidence(std::int64_t row, std::int64_t token, double log_prob, std::int64_t most,
                    std::int64_t context_tokens) const;
  /// After log_probs() of rows [begin, begin + R) of a window: the share of p(target) that each of
  /// MemoryPlan::names() gave, (R, n) float64, rows that sum to 1. `log_probs` (R): of the targets.
  torch::Tensor source_shares(const Window& window, std::int64_t begin,
                              const torch::Tensor& log_probs) const;
  /// What comes next in a row's stream, for log_probs(): its first tokens too, and those that
  /// append() is given as labels.
  void read(std::int64_t row, std::span<const std::int64_t> tokens);
  /// Remembers T steps of all rows, step by step: f (T * rows, d_model), g (T * rows, d_key),
  /// labels and place (T * rows). A padded place (run -1) is seen by nobody.
  void append(const torch::Tensor& f, const torch::Tensor& g, const torch::Tensor& labels,
              const nn::Place& place);

  /// The weights that another memory's stream 0 has learned are row's from here on.
  void take_weights(std::int64_t row, const StreamMemory& from);

  /// Row i becomes what row rows[i] was, as EntryRing::select.
  void select(const torch::Tensor& rows);
  /// A stream ends: nothing is remembered.
  void clear();
  /// How log_probs() asked the stores.
  SearchCounts searches() const;
  /// False: append() does nothing.
  bool remembers() const { return remembers_; }
  /// False: scores are the head's own.
  bool any() const { return !sources_.empty(); }
  const Mixture& mixture() const { return mixture_; }

 private:
  torch::Tensor mix(nn::Head& head, WordRows rows, const Asked* asked);
  MixtureWeights weights_for(const Components& components, const WordRows& rows);
  RowWeights weights_of(std::size_t source) const;
  // What the last log_probs() mixed.
  struct Mixed {
    Components components;
    MixtureWeights weights;
    torch::Tensor log_z;                    // (R): normalises the joint scores of sources
    std::vector<std::size_t> first_own;     // of each source: its first weight
    std::vector<torch::Tensor> given = {};  // see Mixture::given(), once it is asked for
  };

  MemoryPlan plan_;
  std::int64_t rows_;
  torch::Dtype dtype_;
  bool remembers_;
  Mixture mixture_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<OnlineWeights> online_;  // of each stream; none: the weights are the plan's
  mutable Mixed mixed_;
};

}  // namespace infer
