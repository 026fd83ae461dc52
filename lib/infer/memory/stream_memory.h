#pragma once
// Memories at test time: runs the sources of a plan on streams and mixes their scores.
// Scores of R targets from all sources, at every point of a grid.
// Learns the weights of sources from the given beginning of a text: a prompt, or a context.

#include "infer/memory/mixture.h"

namespace infer {

/// All tensors are float64 on the CPU.
struct Parts {
  torch::Tensor head, log_z = {};  ///< (R): log p without memories, and its log-normaliser
  torch::Tensor confidence = {};   ///< (R, kConfidence), if gates need it
  std::vector<SourceScores> sources = {};
  torch::Tensor weight = {};  ///< (R): weight of each token; undefined: 1

  /// Returns the components of the mixture at a point, given by the indices of its values in the
  /// axes (default 0). `kept`: the plan's kinds that take part; other kinds have no entries.
  Components at(const MemoryPlan& plan, const std::vector<std::size_t>& places = {},
      const std::vector<bool>* kept = nullptr) const;
  /// Returns the neighbours from datastores; null: none.
  const Neighbours* found() const;
  /// Lists all tensors, possibly undefined, in a fixed order: (..., R) or (..., R, F).
  struct Member {
    torch::Tensor* tensor;
    bool featured;  ///< (..., R, F)
  };
  std::vector<Member> members();
};

/// Stores streams and scores their next tokens. Keys are float32 (or float64). Not thread safe.
class StreamMemory {
 public:
  /// `window` is in tokens. `streaming`: blocks follow one another without context, and local
  /// memory is the last `window` positions, independent of blocks (required by log_probs() of
  /// single positions, which sees only the ring). `rows`: number of streams that advance together,
  /// distinguished by run. `grid`: tuned parameters.
  StreamMemory(const MemoryPlan& plan, std::int64_t window, bool streaming, const nn::Model& model,
      std::int64_t rows = 1, const Grid& grid = {});

  /// Starts the searches of all sources for a batch of windows; an element is null if its source
  /// has no search.
  using Asked = std::vector<std::unique_ptr<LookupResult>>;
  Asked look_up(const Lookup& lookup);
  /// Returns whether look_up() needs the confidence.
  bool asks_confidence() const { return plan_.gates.skips(); }
  /// Announces the data to score.
  void announce(const shard::Dataset& data);

  /// Collects each source's data for the scored rows of a window of one stream, with targets (R) on
  /// the CPU, then stores the new rows. Does not synchronise with the device.
  using Recalled = std::vector<std::vector<torch::Tensor>>;
  Recalled recall(const Window& window, const torch::Tensor& targets);
  /// Stores the new rows of a window of one stream.
  void remember(const Window& window);
  /// Scores rows. The head's scores and `recalled` are float64 on the CPU. `asked` is the result
  /// for the batch, in which the rows begin at `offset`; `first` is the element of the first
  /// target.
  Parts score(const HeadRows& head, const torch::Tensor& targets, const Recalled& recalled,
      const Asked& asked, std::int64_t offset, std::uint64_t first);

  /// Returns log p by the mixture, (R), from score(), in the order of the stream. Online weights
  /// learn from the rows; `fresh`: they begin anew before them.
  torch::Tensor mix(const Parts& parts, bool fresh);

  /// Returns log p of every token by the mixture, (R, V) float32 or float64, for positions with
  /// unknown labels: f (R, d_model), g (R, d_key), place (R). Searches the datastores. `ensemble`:
  /// log p by each further model, (R, its V).
  torch::Tensor log_probs(nn::Head& head, const torch::Tensor& f, const torch::Tensor& g,
      const nn::TokenPositions& place, const std::vector<torch::Tensor>& ensemble = {});
  /// Returns log p of every token at rows [begin, end) of a window. Stores no positions;
  /// token-reading sources read the targets, so that rows must come in order from the first scored
  /// one. `asked`: results of look_up() for the batch, in which row `begin` is row `offset`; null:
  /// searches here.
  torch::Tensor log_probs(nn::Head& head, const Window& window, std::int64_t begin,
      std::int64_t end, const Asked* asked = nullptr, std::int64_t offset = 0,
      const std::vector<torch::Tensor>& ensemble = {});
  /// Returns the contribution of each datastore entry labelled with the token to its probability.
  /// Call log_probs() before.
  std::vector<StoreShare> store_shares(const RowToken& of) const;
  /// Returns the contributions of all sources that support citations: at most `most` contexts of
  /// each source, with `context_tokens` tokens each.
  Evidence evidence(const RowToken& of, std::int64_t most, std::int64_t context_tokens) const;
  /// Returns the fraction of p(token) from each of MemoryPlan::names(), (R, n) float64; rows sum
  /// to 1. Call log_probs() before: for positions with unknown labels, where local and long count
  /// as the vocabulary, or for rows [begin, begin + R) of the window. `log_probs` (R) are of the
  /// tokens (R).
  torch::Tensor source_shares(const torch::Tensor& tokens, const torch::Tensor& log_probs,
      const Window* window = nullptr, std::int64_t begin = 0) const;
  /// Reads the next tokens of a row's stream, for log_probs(): its first tokens too, and those
  /// passed to append() as labels.
  void read(std::int64_t row, std::span<const std::int64_t> tokens);
  /// Stores T steps of all rows, step by step: f (T * rows, d_model), g (T * rows, d_key), labels
  /// and place (T * rows). Padded positions (run -1) are never visible.
  void append(const torch::Tensor& f, const torch::Tensor& g, const torch::Tensor& labels,
      const nn::TokenPositions& place);

  /// learned(): the weights of stream 0. take_weights(): sets those of a row. Only if weights are
  /// learned online.
  const OnlineWeights& learned() const { return online_[0]; }
  void take_weights(std::int64_t row, const OnlineWeights& weights);
  /// Whether log_probs() of a window learns nothing from its targets.
  void hold_weights(bool held) { held_ = held; }

  /// Replaces row i by the former row rows[i], as EntryRing::select.
  void select(const torch::Tensor& rows);
  /// Appends the streams of another memory with the same plan, which have been read but not scored.
  /// The next call is log_probs() or select().
  void join(const StreamMemory& other);
  /// Ends the stream: clears what sources store, and the weights that were learned.
  void clear();
  /// Clears what sources store. Windows that were recalled before may be mixed later.
  void clear_sources();
  /// Returns the numbers of datastore lookups by log_probs().
  SearchCounts searches() const;
  /// Returns whether positions are stored; false: append() does nothing.
  bool remembers() const { return remembers_; }
  /// Returns whether any source takes part; false: scores are the head's own.
  bool any() const { return !sources_.empty(); }
  const Mixture& mixture() const { return mixture_; }

 private:
  torch::Tensor mix(nn::Head& head, VocabularyRows rows, const Asked* asked);
  MixtureWeights weights_for(const Components& components, const VocabularyRows& rows);
  RowWeights weights_of(std::size_t source) const;
  // Inputs of the last mixture in log_probs().
  struct Mixed {
    Components components;
    MixtureWeights weights;
    torch::Tensor log_z;                    // (R): log-normaliser of the joint scores
    std::vector<std::size_t> begins;        // index of each source's first weight
    std::vector<torch::Tensor> given = {};  // see Mixture::given(); computed on demand
  };

  // Invariants between calls:
  // - sources_[i] is the source of plan_.kinds()[i], and stores rows_ streams.
  // - online_ is empty unless the plan's weights are learned online; then it has rows_ elements.
  // - mixed_ is of the last log_probs(), or empty. Source i has the weights
  //   [begins[i], begins[i + 1]) of its components, and given is empty or complete.
  MemoryPlan plan_;
  std::int64_t rows_;
  torch::Dtype dtype_;
  bool remembers_;
  Mixture mixture_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<OnlineWeights> online_;  // for each stream; empty: the plan's weights are used
  bool held_ = false;
  mutable Mixed mixed_;
};

/// Returns log p by each further model, (end - begin, its V), of the tokens after these positions.
using EnsembleRows =
    std::function<std::vector<torch::Tensor>(std::int64_t begin, std::int64_t end)>;

/// Scores all tokens of a text but the first, in order, with the memories of a stream that begins
/// with them. The plan's weights are learned online.
class WeightsLearner {
 public:
  WeightsLearner(const MemoryPlan& plan, std::int64_t window, const nn::Model& model);
  /// Scores at most `most` more of the tokens and returns how many. The arguments before `most` are
  /// of the whole text in each call; `hidden` may lack the last token.
  std::int64_t learn(nn::Head& head, const std::vector<std::int64_t>& tokens,
      const nn::Hidden& hidden, const EnsembleRows& ensemble, std::int64_t most);
  /// Returns how many tokens were scored.
  std::int64_t scored() const { return scored_; }
  const OnlineWeights& weights() const { return memory_.learned(); }

 private:
  StreamMemory memory_;
  std::int64_t block_, scored_ = 0;
};

}  // namespace infer
