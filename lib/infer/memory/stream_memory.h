#pragma once
// Memories at test time: what came before in the stream, joined with the head's scores.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "infer/memory/follow.h"
#include "infer/memory/memory_plan.h"
#include "infer/memory/ngram_memory.h"
#include "infer/memory/shares.h"
#include "infer/stores/neighbours.h"
#include "nn/base/head.h"
#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"
#include "nn/memory/entry_ring.h"

namespace infer {

/// The head's part of R rows: log p of the target and the first level's log-sum-exp, each (R).
struct HeadRows {
  torch::Tensor log_prob, log_z;
  torch::Tensor confidence = {};  ///< (R, kConfidence), where gates ask for it
};
/// In blocks of about `block_bytes`, without gradient. f (R, d), targets (R).
HeadRows head_rows(nn::Head& head, const torch::Tensor& f, const nn::Targets& targets,
                   std::int64_t block_bytes = 64 << 20);
/// The same with the confidence, from whole rows.
HeadRows confident_rows(nn::Head& head, const torch::Tensor& f, const nn::Targets& targets,
                        std::int64_t block_bytes = 64 << 20);

/// Consecutive positions of one stream: a whole window, of which rows from `first_scored` on are
/// scored and the others are context. Those from `first_new` on stood in no window before; unless
/// it is given, they are those that are scored.
struct Window {
  torch::Tensor f, g;     ///< (T, d_model), (T, d_key)
  torch::Tensor targets;  ///< (T) int64, on their device
  nn::Place place;        ///< (T)
  std::int64_t first_scored = 0;
  std::optional<std::int64_t> first_new = {};
  /// Tokens of the stream before the first target that is scored, which n-grams have not read yet.
  std::vector<std::int64_t> before = {};
};

/// Log-masses of entries that R rows see, (n, R) at n temperatures.
struct Masses {
  torch::Tensor all, positive;
  bool any() const { return all.defined(); }
};

/// What a stream's memories had for the R scored rows of a window, where the rows are; undefined:
/// not used.
struct Recalled {
  Masses context;  ///< local and long together
  Masses cache;
  NgramScores ngrams;  ///< on the CPU
};

/// What gates see of R targets, float64 on the CPU; see GateInputs.
struct GateSights {
  torch::Tensor confidence;  ///< (R, kConfidence)
  torch::Tensor stores;      ///< (R, 4), at the first nprobe; undefined: not used
  torch::Tensor cache_mass;  ///< (n_thetas, R), the same
  torch::Tensor with;        ///< (R, kConfidence) of the further model with a gate, the same
};

/// log p of each of R targets by each source, float64 on the CPU; -inf where p is 0. The first
/// dimensions are the grid of temperatures, thetas and nprobes; of length 1 unless one tunes.
struct Parts {
  torch::Tensor head;    ///< (R): without any memory
  torch::Tensor joint;   ///< (n_nprobes, n_temperatures, R); head's where nothing is joined
  torch::Tensor memory;  ///< (n_temperatures, R), NaN where nothing is seen; undefined: not used
  torch::Tensor cache;   ///< (n_thetas, R), the same
  torch::Tensor stores;  ///< (n_nprobes, n_store_temperatures, R), the same
  NgramScores ngrams;    ///< undefined: not used
  torch::Tensor with;    ///< (models, R), NaN where a further model has none; undefined: not used
  GateSights gates;      ///< undefined: there are no gates
  torch::Tensor weight = {};  ///< (R): for how many tokens each counts; undefined: for one
};
/// At one of the thetas.
GateInputs gate_inputs(const Parts& parts, std::int64_t theta = 0);
/// log p of the mixture at the plan's lambdas, or by its gates, and the first point of the grid:
/// (R).
torch::Tensor mix(const Parts& parts, const MemoryPlan& plan);
/// The same at the plan's lambdas, though it has gates.
torch::Tensor mix_constant(const Parts& parts, const MemoryPlan& plan);

/// Where probability comes from: vocabulary, local, long, cache, each store and each further model
/// by its folder, n-grams;
/// those that a plan has.
std::vector<std::string> source_names(const MemoryPlan& plan);

/// Several values of what is tuned; empty: the plan's own.
struct MemoryGrid {
  std::vector<double> temperatures, thetas, store_temperatures;
  std::vector<std::int64_t> nprobes;
  /// The plan's own where nothing was given.
  void fill(const MemoryPlan& plan);
};

/// Remembers streams and scores what follows. A position is one entry, never two: those that stand
/// in the window are taken from the window, the ring serves those before it. The rules of who sees
/// whom are nn::MemoryRule's. Not thread safe; keeps keys in float32 (or float64).
class StreamMemory {
 public:
  /// `window` tokens. `streaming`: blocks follow each other without context, and local is the last
  /// `window` positions, whatever the block (log_probs needs it: it sees the ring only). `rows`:
  /// streams that advance together, told apart by their run.
  StreamMemory(const MemoryPlan& plan, std::int64_t window, bool streaming, const nn::Model& model,
               std::int64_t rows = 1, MemoryGrid grid = {});

  /// What there is for the scored rows of a window (of one stream), whose targets these are, (R) on
  /// the CPU; the new rows are then remembered. The host waits for nothing.
  Recalled recall(const Window& window, const torch::Tensor& targets);
  /// The parts of these rows. What the head gave for them and what was recalled are float64 on the
  /// CPU. `found`: what the stores gave for them, one for each nprobe of the grid; empty if no
  /// store takes part.
  Parts score(const HeadRows& head, const torch::Tensor& targets, const Recalled& recalled,
              const std::vector<Neighbours>& found) const;

  /// log p of every word, by all sources together: f (R, d_model), g (R, d_key) and their place
  /// (R), positions whose labels are not known yet. The stores are searched here. `with`: what each
  /// further model gives, (R, V of its own). Returns (R, V), float32 or float64.
  torch::Tensor log_probs(nn::Head& head, const torch::Tensor& f, const torch::Tensor& g,
                          const nn::Place& place, const std::vector<torch::Tensor>& with = {});
  /// The same at rows [begin, end) of a window, of which nothing is remembered but by n-grams: they
  /// read the targets, so that rows come in their order from the first that is scored. `found`:
  /// what the stores gave for these rows, where any take part.
  torch::Tensor log_probs(nn::Head& head, const Window& window, std::int64_t begin,
                          std::int64_t end, const Neighbours& found = {},
                          const std::vector<torch::Tensor>& with = {});
  /// After log_probs(): what each entry of the stores with the label `token` gave of row's
  /// p(token), whose logarithm is `log_prob`.
  std::vector<StoreShare> store_shares(std::int64_t row, std::int64_t token, double log_prob) const;
  /// The same of n-grams.
  std::optional<NgramShare> ngram_share(std::int64_t row, std::int64_t token,
                                        double log_prob) const;
  /// After log_probs() of rows [begin, begin + R) of a window: the share of p(target) that each of
  /// source_names() gave, (R, n) float64, rows that sum to 1. `log_probs` (R): of the targets.
  torch::Tensor source_shares(const Window& window, std::int64_t begin,
                              const torch::Tensor& log_probs) const;
  /// The same of the further models, in their order.
  std::vector<double> with_shares(std::int64_t row, std::int64_t token, double log_prob) const;
  /// What comes next in a row's stream, for log_probs(): its first tokens too, and those that
  /// append() is given as labels.
  void read(std::int64_t row, std::span<const std::int64_t> tokens);
  /// Remembers T steps of all rows, step by step: f (T * rows, d_model), g (T * rows, d_key),
  /// labels and place (T * rows). A padded place (run -1) is seen by nobody.
  void append(const torch::Tensor& f, const torch::Tensor& g, const torch::Tensor& labels,
              const nn::Place& place);

  /// Row i becomes what row rows[i] was, as EntryRing::select.
  void select(const torch::Tensor& rows);
  /// A stream ends: nothing is remembered.
  void clear();
  /// How log_probs() asked the stores.
  const SearchCounts& searches() const { return searches_; }
  /// False: append() does nothing.
  bool remembers() const { return context_.has_value() || cache_.has_value(); }
  /// False: scores are the head's own.
  bool any() const {
    return remembers() || plan_.stores.any() || ngrams_.has_value() || plan_.with.any();
  }

 private:
  // The head's log p of every word (R, V) and its log_z (R, 1).
  struct Words {
    torch::Tensor log_prob, log_z;
  };
  Words words_of(nn::Head& head, const torch::Tensor& f) const;
  // A kind of source: a ring of keys with its rule.
  struct Source {
    nn::MemoryRule rule;
    std::optional<nn::EntryRing> ring;  // none: nothing outside the window is ever seen
    std::vector<double> temperatures;   // at least one
  };
  // Of entries in the ring and in the window together.
  Masses masses(const Source& source, const torch::Tensor& keys, const Window& window) const;
  // What the ring holds of the positions before a window.
  nn::Entries before(const Source& source, const Window& window) const;
  // Log-masses of every word by a source, whose keys are of f or of g: (R, V).
  using WordMasses =
      std::function<torch::Tensor(const Source& source, bool of_f, std::int64_t words)>;
  static nn::MemoryRule rule_of(const Source& source);
  // Log-masses (R) that rows [begin, end) of a window get of what the rule shows of a source.
  Masses masses_of_rows(const Source& source, const nn::MemoryRule& rule, const torch::Tensor& keys,
                        const Window& window, std::int64_t begin, std::int64_t end) const;
  // Of the head's words, for which the stores gave found_ and n-grams contexts_.
  torch::Tensor mixture(const Words& words, const WordMasses& masses);
  Shares shares(const Words& words, const torch::Tensor& cache_mass);
  torch::Tensor joined(const HeadRows& head, const torch::Tensor& targets, const Masses& context,
                       const std::vector<Neighbours>& found) const;
  std::vector<double> joint_divisors() const;

  MemoryPlan plan_;
  MemoryGrid grid_;
  std::int64_t rows_;
  double root_width_;  // sqrt(d_key)
  torch::Dtype dtype_;
  std::optional<Source> context_, cache_;
  nn::MemoryRule local_rule_;  // of context_, what of it is local
  std::optional<NgramMemory> ngrams_;
  SearchCounts searches_;
  Neighbours found_;                    // of the last log_probs()
  std::vector<torch::Tensor> with_;     // of the same
  std::vector<Pointers> pointers_;      // of each row after it, where the plan follows
  std::vector<NgramContext> contexts_;  // of the same
  torch::Tensor joint_log_z_;  // (R, 1), of the same: normalises the joint scores of memories
  torch::Tensor joint_share_;  // (R, 1), of the same: p_joint's in the mixture of all but n-grams
  torch::Tensor memory_share_, cache_share_, stores_share_;  // (R, 1), of the same, the same way
  std::vector<torch::Tensor> with_shares_;                   // (R, 1) of each of with_
  torch::Tensor rest_;  // (R, 1), of the same: what n-grams leave to that mixture
};

}  // namespace infer
