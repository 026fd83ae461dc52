#pragma once
// Interface of a source of probability. The mixture of all sources is
//
//   p(w) = sum over sources of weight times p_source(w)
//
// A source returns log-masses that join the head's softmax (TRIME, eq. 2), distributions of its
// own, or both. It reads streams, stores what it needs of them, and reports what contributed to a
// token's probability. To add a kind, write one file that defines a SourceKind and add a line to
// source_kinds().

#include "infer/sources/ensemble_models.h"
#include "infer/stores/shared_stores.h"

namespace infer {

struct MemoryPlan;
struct PlanContext;
struct OpenMemories;

/// Named axes, each with the values to try. A source that has a parameter with the name of an axis
/// scores its targets at each value. A parameter without an axis keeps the plan's value.
struct Grid {
  struct Axis {
    std::string name;
    std::vector<double> values;  ///< at least one
  };
  std::vector<Axis> axes;

  /// Returns the values of an axis; {own} if the grid has no such axis.
  std::vector<double> values(const std::string& name, double own) const {
    const auto i = find(name);
    return i < axes.size() ? axes[i].values : std::vector{own};
  }
  /// Returns the number of points: every combination of values, the last axis fastest.
  std::size_t size() const {
    std::size_t size = 1;
    for (const auto& axis : axes) size *= axis.values.size();
    return size;
  }
  /// Returns the index of a point's value in each axis.
  std::vector<std::size_t> at(std::size_t point) const {
    std::vector<std::size_t> places(axes.size());
    for (std::size_t i = axes.size(); i-- > 0; point /= axes[i].values.size())
      places[i] = point % axes[i].values.size();
    return places;
  }
  /// Returns the index of an axis; axes.size() if absent.
  std::size_t find(const std::string& name) const {
    std::size_t i = 0;
    while (i < axes.size() && axes[i].name != name) ++i;
    return i;
  }
};

/// Consecutive positions of one stream: a whole window. Rows from `first_scored` on are scored;
/// earlier rows are context. Rows from `first_new` on were in no earlier window; by default
/// first_new = first_scored.
struct Window {
  torch::Tensor output, key;  ///< (T, d_model), (T, d_key)
  torch::Tensor targets;      ///< (T) int64, on the model's device
  nn::TokenPositions place;   ///< (T)
  std::int64_t first_scored = 0;
  std::optional<std::int64_t> first_new = {};
  /// Tokens of the stream before the first scored target that token-reading sources have not read
  /// yet.
  std::vector<std::int64_t> before = {};
};

/// Scores of R targets from a source, float64 on the CPU. Leading dimensions are the axes, with
/// length 1 if the tensor does not depend on an axis.
struct SourceScores {
  std::vector<std::size_t> axes = {};  ///< indices of its axes in the grid
  /// (axes..., R) for each of SourceKind::joint(), or one for all of them if their biases are
  /// equal: masses that join the head's softmax.
  std::vector<nn::Masses> joined = {};
  /// (axes..., R) for each weight: log p of a separate distribution; -inf if p is 0, NaN if no
  /// entry is visible.
  std::vector<torch::Tensor> separate = {};
  torch::Tensor bucket = {};  ///< (R) int64: index of the weight that applies, -1: none; undefined:
                              ///< a single weight
  torch::Tensor features = {};  ///< (axes..., R, F) features of its gate; undefined: no gate
  std::shared_ptr<const Neighbours> found = {};  ///< neighbours that the source looked up
};

/// Scores of all tokens for R rows, at the plan's parameters, on the model's device.
struct VocabularyScores {
  std::vector<torch::Tensor> masses = {};    ///< (R, V) log-masses to join, as SourceScores::joined
  std::vector<torch::Tensor> separate = {};  ///< (R, V) log p
  torch::Tensor bucket = {}, features = {};  ///< (R), (R, F) on the CPU
};

/// Numbers of tokens by kind of datastore lookup.
struct SearchCounts {
  std::int64_t made = 0;      ///< searches
  std::int64_t followed = 0;  ///< used the rows after the last neighbours instead
  std::int64_t skipped = 0;   ///< no lookup, because the gate's weight is below the threshold
  void add(const SearchCounts& more) {
    made += more.made, followed += more.followed, skipped += more.skipped;
  }
};

/// Returns the elements of `of` at rows (n) int64 on the CPU.
template <class T> std::vector<T> selected(const std::vector<T>& of, const torch::Tensor& rows) {
  std::vector<T> some;
  for (std::int64_t i = 0; i < rows.size(0); ++i)
    some.push_back(of[static_cast<std::size_t>(rows[i].item<std::int64_t>())]);
  return some;
}

/// Scored rows of a batch of windows, one segment of text for each window.
struct Lookup {
  torch::Tensor queries;              ///< (R, d_key)
  torch::Tensor targets;              ///< (R) int64, CPU
  std::vector<std::int64_t> lengths;  ///< lengths of the segments, sum R
  torch::Tensor confidence;           ///< (R, kConfidence), if a source needs it
  shard::Fingerprints skip;           ///< fingerprints of the text, whose entries are excluded
  bool background = false;            ///< search in another thread while the caller continues
};
/// Results of a source for a batch; the search may still run.
struct LookupResult {
  virtual ~LookupResult() = default;
  /// Returns lookup counts, if they can differ between tokens. Waits for the search.
  virtual std::optional<SearchCounts> counts() { return {}; }
};

/// R rows for which all tokens are scored: positions with unknown labels, one for each stream, or
/// rows [begin, end) of a window of one stream.
struct VocabularyRows {
  torch::Tensor output, key;                   ///< (R, d_model), (R, d_key)
  nn::TokenPositions place;                    ///< (R)
  torch::Tensor head;                          ///< (R, V) the head's own log p
  const std::vector<torch::Tensor>& ensemble;  ///< log p of the ensemble's other models, (R, V of
                                               ///< each)
  const Window* window = nullptr;
  std::int64_t begin = 0, end = 0;
  LookupResult* found = nullptr;  ///< results for the window's batch; null: search now
  std::int64_t offset = 0;        ///< of the first row in that batch
  torch::Tensor confidence = {};  ///< (R, kConfidence), if a source needs it
  std::int64_t vocabulary() const { return head.size(1); }
};

/// Mixture weights of the parts of a source at R rows, float64 on the CPU.
struct RowWeights {
  torch::Tensor joint;                  ///< (R), weight of the joint softmax
  std::vector<torch::Tensor> log_z;     ///< (R), log-normaliser of each joined part
  std::vector<torch::Tensor> separate;  ///< (R), for each weight of the source
};

/// Rows that a source scores after it recalled them.
struct RecalledRows {
  const torch::Tensor& targets;                ///< (R) int64, CPU
  const std::vector<torch::Tensor>& recalled;  ///< result of recall(), float64 on the CPU
  LookupResult* found;                         ///< result for the batch; null: none
  std::int64_t offset;                         ///< of the first row in that batch
  std::uint64_t first;                         ///< element of the first target
  std::int64_t size() const { return targets.size(0); }
};

/// A token of a row of score_vocabulary(), and the logarithm of its probability by the mixture.
struct RowToken {
  std::int64_t row, token;
  double log_prob;
};

/// Contexts and models that contributed to a token's probability.
struct Evidence {
  struct Context {
    std::string store;  ///< folder of a datastore or of an n-gram index; else the kind's name
    std::int64_t document = 0;
    std::int64_t row = 0;  ///< row in the datastore; for n-grams, index of the token in the text
    double share = 0;
    std::vector<std::int32_t> before = {};  ///< tokens before it in its document
    std::int64_t matched = 0;               ///< number of these tokens that match the text; 0 for
                                            ///< datastores
    std::string name = {};                  ///< name of the document; empty: none
    /// All tokens before it in a named document; nullopt: not all are known.
    std::optional<std::vector<std::int32_t>> since_start = {};
  };
  struct Model {
    std::string folder;
    double share;
  };
  double share = 0;                    ///< of all contexts, including unlisted ones
  std::vector<Context> contexts = {};  ///< by descending share
  std::vector<Model> models = {};
};

/// A source in use. Not thread safe.
class Source {
 public:
  virtual ~Source() = default;

  /// Announces the data to score: `first` of score() is an element of `data`.
  virtual void announce(const shard::Dataset& /*data*/) {}
  /// Starts the search for a batch of windows; null: the source has no search.
  virtual std::unique_ptr<LookupResult> look_up(const Lookup& /*lookup*/) { return nullptr; }
  /// Returns the source's data for the scored rows of a window of stream 0, on their device, before
  /// append() stores these rows. targets (R) int64, CPU.
  virtual std::vector<torch::Tensor> recall(
      const Window& /*window*/, const torch::Tensor& /*targets*/) {
    return {};
  }
  /// Scores the rows passed to recall().
  virtual SourceScores score(const RecalledRows& rows) = 0;

  /// Scores all tokens of the vocabulary for the rows; the calls below refer to the last call of
  /// score_vocabulary().
  virtual VocabularyScores score_vocabulary(const VocabularyRows& rows) = 0;
  /// Returns the datastore entries labelled with the token that contributed to its probability,
  /// with their shares.
  virtual std::vector<StoreShare> entries(
      const RowToken& /*of*/, const RowWeights& /*weights*/) const {
    return {};
  }
  /// Returns at most `most` contexts, each with `context_tokens` tokens.
  virtual Evidence evidence(const RowToken& /*of*/, const RowWeights& /*weights*/,
      std::int64_t /*most*/, std::int64_t /*context_tokens*/) const {
    return {};
  }
  /// Returns the fraction of p(target) from each of SourceKind::names(), (R) each, relative to
  /// log_prob (R) float64, for the rows of a window from `begin` on; null: for positions with
  /// unknown labels, where local and long have 0. Call score_vocabulary() for these rows before.
  /// Returns nothing if each name is a distribution of its own: its fraction is then its weight
  /// times its p.
  virtual std::vector<torch::Tensor> shares(const Window* /*window*/, std::int64_t /*begin*/,
      const torch::Tensor& /*targets*/, const torch::Tensor& /*log_prob*/,
      const RowWeights& /*weights*/) const {
    return {};
  }

  /// Stores T steps of all streams: (T, streams, ...).
  virtual void append(const torch::Tensor& /*f*/, const torch::Tensor& /*g*/,
      const torch::Tensor& /*labels*/, const nn::TokenPositions& /*place*/) {}
  /// Reads the next tokens of a stream.
  virtual void read(std::int64_t /*row*/, std::span<const std::int64_t> /*tokens*/) {}
  /// Replaces stream i by the former stream rows[i].
  virtual void select(const torch::Tensor& /*rows*/) {}
  virtual void clear() {}
  virtual SearchCounts searches() const { return {}; }
  /// Appends the `more` streams of another source of the same kind and plan behind the own
  /// `streams`. The next call is score_vocabulary() or select().
  virtual void join(const Source& /*other*/, std::int64_t /*streams*/, std::int64_t /*more*/) {}
};

/// Shape of the streams for which a source is opened.
struct StreamShape {
  std::int64_t window;  ///< tokens
  /// Blocks follow one another without context; the reach includes the window.
  bool streaming;
  std::int64_t streams;  ///< number of streams that advance together
  std::int64_t d_key;
  torch::Dtype dtype;  ///< type of keys
};

/// A weight of the mixture: a number, or one for each bucket of tokens.
struct PlanWeight {
  std::string kind, flag;    ///< kind and flag of the source
  std::span<double> values;  ///< several, by bucket: fractions of what later sources leave; one:
                             ///< fraction of the rest
  bool gated = false;        ///< a gate gives the weight; `values` are its constants
  bool tempered = false;     ///< of a distribution with the joint temperature
  bool by_bucket() const { return values.size() > 1; }
};

/// Description of a tunable parameter: --tune-FLAG takes the values to try.
struct AxisFacts {
  std::string name, flag, help;
  double least, most;
  bool whole = false;
};
/// A tunable parameter of a plan.
struct PlanAxis {
  std::string name;
  std::variant<double*, std::int64_t*> value;  ///< in the plan
  std::vector<double> steps = {};              ///< default values to try; empty: the plan's value
  bool matters = true;  ///< the parameter affects the result at the plan's weights
  /// Name of the joint softmax's part whose temperature, or bias, the parameter is.
  std::string temperature_of = {}, bias_of = {};
  /// The values are tried with the other parameters at their best, not in every combination.
  bool alone = false;
  std::string facts = {};  ///< name in AxisFacts, if several axes take their values from one list
  const std::string& listed() const { return facts.empty() ? name : facts; }
  double get() const {
    return std::visit([](const auto* of) { return static_cast<double>(*of); }, value);
  }
  void set(double to) const {
    std::visit(
        [to](auto* of) { *of = static_cast<std::remove_pointer_t<decltype(of)>>(to); }, value);
  }
};

/// A kind's gate: its inputs beside the model's confidence.
struct GateFacts {
  std::string flag = {};                   ///< flag that takes `gate`; empty: no gate
  std::vector<std::string> features = {};  ///< names
  std::int64_t weights = 1;                ///< number of weights: one, or one for each bucket
  std::int64_t run = 1;                    ///< length of a run of buckets, in which each resembles
                                           ///< the previous one
  bool searched = false;  ///< the gate also decides from the confidence alone whether to search
};

/// What a kind always is.
struct KindFacts {
  std::string name;         ///< also of the option that adds the source
  std::string column = {};  ///< in the per-token file, one for all its weights; empty: the name
  bool remembers = false;   ///< positions of a stream are stored
  bool in_order = false;    ///< windows must come in the order of the text
  bool reads = false;       ///< reads streams token by token, including Window::before
  bool cites = false;       ///< can cite contexts or models
  bool trained = false;     ///< models are trained with it; its option takes `none`
  GateFacts gate = {};
  std::vector<std::string> borrows = {};  ///< options that another kind lists and it uses too
};

/// What a source searches for each token.
struct SearchPlan {
  std::shared_ptr<const Stores> where = nullptr;  ///< null: it does not search
  std::int64_t k = 0;                             ///< number of neighbours
};

/// Callback for the facts of a plan: name, value.
using SayFact = std::function<void(const char* name, const std::string& value)>;
using SayLine = std::function<void(const std::string& line)>;

/// A kind of source: its options, its plan and its constructor. Stateless.
class SourceKind {
 public:
  explicit SourceKind(KindFacts facts) : facts_(std::move(facts)) {}
  virtual ~SourceKind() = default;
  const KindFacts& facts() const { return facts_; }
  const std::string& name() const { return facts_.name; }

  virtual void fields(MemoryOptions& options, core::FieldList& f) const = 0;
  /// asked(): whether the options request the kind beyond the training configuration.
  /// share_given(): whether they give its weight.
  virtual bool asked(const MemoryOptions& options, const PlanContext& context) const = 0;
  virtual bool share_given(const MemoryOptions& /*options*/) const { return false; }
  /// Resolves the options. Throws Error{usage} for options that contradict each other or the model.
  virtual void plan(
      const MemoryOptions& options, const PlanContext& context, MemoryPlan& plan) const = 0;
  /// Writes the options that resolve to the plan.
  virtual void settle(const MemoryPlan& plan, MemoryOptions& options) const = 0;
  virtual bool any(const MemoryPlan& plan) const = 0;
  virtual std::unique_ptr<Source> open(
      const MemoryPlan& plan, const StreamShape& shape, const Grid& grid) const = 0;
  virtual void weights(MemoryPlan& /*plan*/, std::vector<PlanWeight>& /*weights*/) const {}
  /// Returns pointers to the plan's parts of the joint softmax that hold its entries.
  virtual std::vector<JointPart*> joint(MemoryPlan& /*plan*/) const { return {}; }
  virtual std::vector<AxisFacts> axis_facts() const { return {}; }
  virtual void axes(MemoryPlan& /*plan*/, std::vector<PlanAxis>& /*axes*/) const {}
  /// Passes the facts for a result's signature to `say`, if any() or facts().trained.
  virtual void sign(const MemoryPlan& plan, const SayFact& say) const = 0;
  /// Returns its names in annotated texts.
  virtual std::vector<std::string> names(const MemoryPlan& /*plan*/) const { return {name()}; }
  /// Passes notes to `say` that concern scoring a text with these fingerprints.
  virtual void notes(const MemoryPlan& /*plan*/, const shard::Fingerprints& /*texts*/,
      const char* /*what*/, const SayLine& /*say*/) const {}
  /// Removes entries of these texts from the plan, if the source does not exclude them on its own.
  virtual void leave_out(MemoryPlan& /*plan*/, const shard::Fingerprints& /*texts*/) const {}

  /// Puts the files of the options into the plan, after planning: those of context.open, or if
  /// there are none and context.loaded is not null, new ones, which it keeps there.
  virtual void load(const MemoryOptions& /*options*/, const PlanContext& /*context*/,
      MemoryPlan& /*plan*/) const {}
  /// Opens files of the options, some on each rank, for all ranks. Collective.
  virtual void share(const MemoryOptions& /*options*/, const model::Loaded& /*loaded*/,
      const std::shared_ptr<ranks::Group>& /*group*/, OpenMemories& /*open*/) const {}
  virtual SearchPlan search(const MemoryPlan& /*plan*/) const { return {}; }
  /// Returns the maximum distance looked back from a window. `streamed`: tokens of a window whose
  /// own positions count as reach; else 0.
  virtual std::int64_t reach(const MemoryPlan& /*plan*/, std::int64_t /*streamed*/) const {
    return 0;
  }
  /// Returns the models that read the text beside the main model, by the options and by the plan.
  virtual std::vector<std::string> models(const MemoryOptions& /*options*/) const { return {}; }
  virtual EnsembleModels models(const MemoryPlan& /*plan*/) const { return {}; }
  /// Returns whether tokens before `read`, the last tokens read of a stream, matter too.
  virtual bool wants_more(
      const MemoryPlan& /*plan*/, std::span<const std::int64_t> /*read*/) const {
    return false;
  }
  /// Returns the names of its options, tuning included, except the one that adds the source.
  std::vector<std::string> options() const;
  /// Leaves the source out of the options: its options, and values of others that only it supports,
  /// get their defaults.
  virtual void drop(MemoryOptions& options) const;

 private:
  KindFacts facts_;
};

/// Returns all kinds, in the order of flags, signatures and mixtures.
const std::vector<const SourceKind*>& source_kinds();
/// Returns the options that add the kinds for which `is` is true, one or more, as "--cache,
/// --ngrams or --ensemble".
std::string flags_of_kinds(const std::function<bool(const SourceKind&)>& is);

/// Throws Error{usage} for the first of `names` that is an option of kinds that take no part.
void expect_used(const std::vector<std::string>& names,
    const std::function<bool(const SourceKind&)>& takes_part);

}  // namespace infer
