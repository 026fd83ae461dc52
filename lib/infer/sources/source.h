#pragma once
// A source of probability. The mixture of all of them is
//
//   p(w) = sum over sources of weight times p_source(w)
//
// A source gives log-masses that join the head's softmax (TRIME, eq. 2), distributions of its own,
// or both. It reads streams, remembers what it needs of them, and says what gave a token its
// probability. A further kind is one file, which defines a SourceKind, and its line in
// source_kinds().

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "infer/sources/grid.h"
#include "infer/sources/joint_part.h"
#include "infer/stores/neighbours.h"
#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"

namespace infer {

struct MemoryOptions;
struct MemoryPlan;
struct PlanContext;
struct BesideModel;

/// Consecutive positions of one stream: a whole window, of which rows from `first_scored` on are
/// scored and the others are context. Those from `first_new` on stood in no window before; unless
/// it is given, they are those that are scored.
struct Window {
  torch::Tensor f, g;     ///< (T, d_model), (T, d_key)
  torch::Tensor targets;  ///< (T) int64, on their device
  nn::Place place;        ///< (T)
  std::int64_t first_scored = 0;
  std::optional<std::int64_t> first_new = {};
  /// Tokens of the stream before the first target that is scored, which sources that read tokens
  /// have not read yet.
  std::vector<std::int64_t> before = {};
};

/// Log-masses that join the head's softmax, before their part's bias.
struct JointMasses {
  torch::Tensor all, positive;  ///< of all entries, and of those whose label is the target
};

/// What a source gives R targets, float64 on the CPU. Leading dimensions are its axes, of length 1
/// where a tensor does not depend on one.
struct SourceScores {
  std::vector<std::size_t> axes = {};  ///< the places of its axes in the grid
  /// (axes..., R) of each of SourceKind::joint(), or of all of them together, whose biases are one.
  std::vector<JointMasses> joined = {};
  /// (axes..., R) of each of its weights: log p of a distribution of its own; -inf where p is 0,
  /// NaN where nothing is seen.
  std::vector<torch::Tensor> own = {};
  torch::Tensor bucket = {};  ///< (R) int64: which of its weights counts, -1: none; undefined: one
  torch::Tensor features = {};  ///< (axes..., R, F) what its gate sees; undefined: it has none
  std::shared_ptr<const Neighbours> found = {};  ///< the entries that were looked up
};

/// The same of all words of R rows, at the plan's own numbers, where the model is.
struct SourceWords {
  std::vector<torch::Tensor> masses = {};    ///< (R, V) joined log-masses, as SourceScores::joined
  std::vector<torch::Tensor> own = {};       ///< (R, V) log p
  torch::Tensor bucket = {}, features = {};  ///< (R), (R, F) on the CPU
};

/// How stores were asked, a token each.
struct SearchCounts {
  std::int64_t made = 0;      ///< searches
  std::int64_t followed = 0;  ///< rows after the last neighbours instead
  std::int64_t skipped = 0;   ///< neither: the gate gives them too little
  void add(const SearchCounts& more) {
    made += more.made, followed += more.followed, skipped += more.skipped;
  }
};

/// The scored rows of a batch of windows, one stretch of text each.
struct Ask {
  torch::Tensor queries;              ///< (R, d_key)
  torch::Tensor targets;              ///< (R) int64, CPU
  std::vector<std::int64_t> lengths;  ///< of the stretches, R together
  torch::Tensor confidence;           ///< (R, kConfidence), where a source asks for it
  shard::Fingerprints own;            ///< of the text, which sees nothing of itself
  bool beside = false;                ///< in another thread, while the caller goes on
};
/// What a source has for a batch; it may still be looking.
struct Found {
  virtual ~Found() = default;
  /// How it looked, where that may differ from token to token. Waits.
  virtual std::optional<SearchCounts> counts() { return {}; }
};

/// R rows whose words are asked for: positions whose labels are not known yet, one of each stream,
/// or rows [begin, end) of a window of one.
struct WordRows {
  torch::Tensor f, g;                        ///< (R, d_model), (R, d_key)
  nn::Place place;                           ///< (R)
  torch::Tensor head;                        ///< (R, V) the head's own log p
  const std::vector<torch::Tensor>& beside;  ///< log p of models that read beside, (R, V of each)
  const Window* window = nullptr;
  std::int64_t begin = 0, end = 0;
  Found* found = nullptr;         ///< of the window's batch; null: look now
  std::int64_t offset = 0;        ///< of the first row in that batch
  torch::Tensor confidence = {};  ///< (R, kConfidence), where a source asks for it
  std::int64_t words() const { return head.size(1); }
};

/// What the mixture gave the parts of a source at R rows, float64 on the CPU.
struct RowWeights {
  torch::Tensor joint;               ///< (R): of the joint softmax
  std::vector<torch::Tensor> log_z;  ///< (R): what normalises the log-masses of each joined part
  std::vector<torch::Tensor> own;    ///< (R) of each of its weights
};

/// What gave a token a part of its probability.
struct Evidence {
  struct Context {
    std::string store;  ///< folder of a datastore, or of an index of n-grams
    std::int64_t document;
    std::int64_t row;  ///< of the store; the token's element in a text of n-grams
    double share;
    std::vector<std::int32_t> before;  ///< tokens that stood before it there, of the same document
    std::int64_t matched = 0;          ///< of these, as many as are those of the text; stores: 0
    std::string name = {};             ///< of the document; empty: it has none
    /// All tokens before it of a document that has a name; none: not all are known.
    std::optional<std::vector<std::int32_t>> since_start = {};
  };
  struct Model {
    std::string folder;
    double share;
  };
  double share = 0;                    ///< of all contexts, those that are not listed included
  std::vector<Context> contexts = {};  ///< the largest shares first
  std::vector<Model> models = {};
};

/// A source at work. Not thread safe.
class Source {
 public:
  virtual ~Source() = default;

  /// Elements of this data are scored from here on: `first` of score() is one.
  virtual void read_beside(const shard::Dataset& /*data*/) {}
  /// Begins to look for what a batch of windows asks; null: nothing.
  virtual std::unique_ptr<Found> ask(const Ask& /*ask*/) { return nullptr; }
  /// What there is for the scored rows of a window of stream 0, where they are; before these rows
  /// are remembered. targets (R) int64, CPU.
  virtual std::vector<torch::Tensor> recall(const Window& /*window*/,
                                            const torch::Tensor& /*targets*/) {
    return {};
  }
  /// Scores the same rows. `recalled`: float64 on the CPU; `found`: of their batch, of which they
  /// are the rows from `offset` on; `first`: the first target's element.
  virtual SourceScores score(const torch::Tensor& targets,
                             const std::vector<torch::Tensor>& recalled, Found* found,
                             std::int64_t offset, std::uint64_t first) = 0;

  /// Words of rows; what the calls below answer is of the last of these.
  virtual SourceWords words(const WordRows& rows) = 0;
  /// Entries of stores with the label `token` that gave row its p(token), and their parts of it.
  virtual std::vector<StoreShare> entries(std::int64_t /*row*/, std::int64_t /*token*/,
                                          double /*log_prob*/,
                                          const RowWeights& /*weights*/) const {
    return {};
  }
  /// At most `most` contexts, with `context_tokens` tokens of each.
  virtual Evidence evidence(std::int64_t /*row*/, std::int64_t /*token*/, double /*log_prob*/,
                            const RowWeights& /*weights*/, std::int64_t /*most*/,
                            std::int64_t /*context_tokens*/) const {
    return {};
  }
  /// What each of SourceKind::names() gave of p(target): (R) each, over log_prob (R) float64, for
  /// the rows from `begin` on of a window, after words() of them.
  virtual std::vector<torch::Tensor> shares(const Window& window, std::int64_t begin,
                                            const torch::Tensor& targets,
                                            const torch::Tensor& log_prob,
                                            const RowWeights& weights) const = 0;

  /// Remembers T steps of all streams: (T, streams, ...).
  virtual void append(const torch::Tensor& /*f*/, const torch::Tensor& /*g*/,
                      const torch::Tensor& /*labels*/, const nn::Place& /*place*/) {}
  /// What comes next in a stream.
  virtual void read(std::int64_t /*row*/, std::span<const std::int64_t> /*tokens*/) {}
  /// Stream i becomes what stream rows[i] was.
  virtual void select(const torch::Tensor& /*rows*/) {}
  virtual void clear() {}
  virtual SearchCounts searches() const { return {}; }
};

/// What streams a source is opened for.
struct StreamShape {
  std::int64_t window;  ///< tokens
  /// Blocks follow each other without context: what a window sees is a reach too.
  bool streaming;
  std::int64_t streams;  ///< that advance together
  std::int64_t d_key;
  torch::Dtype dtype;  ///< of keys
};

/// A weight of the mixture: a number, or one for each bucket of tokens.
struct PlanWeight {
  std::string kind, flag;    ///< of the source
  std::span<double> values;  ///< more than one: of the whole, by bucket; else of the rest
  bool gated = false;        ///< a gate gives it; `values` are its constants
  bool by_bucket() const { return values.size() > 1; }
};

/// A number that can be tuned: --tune-FLAG takes the values to try.
struct AxisFacts {
  std::string name, flag, help;
  double least, most;
  bool whole = false;
};
/// The same of a plan.
struct PlanAxis {
  std::string name;
  std::function<double()> get;
  std::function<void(double)> set;
  std::vector<double> steps = {};  ///< values tried where none are given; empty: the plan's own
  bool matters = true;             ///< at the plan's weights the number changes anything
  /// The number is the temperature, or the bias, of this part of the joint softmax.
  std::string temperature_of = {}, bias_of = {};
};

/// What the gate of a kind is told by, beside the model's confidence.
struct GateFacts {
  std::string flag;                        ///< whose value is `gate`; empty: it has no gate
  std::vector<std::string> features = {};  ///< names
  std::int64_t weights = 1;                ///< numbers of its weight: one, or one a bucket
  std::int64_t run = 1;                    ///< buckets of a run, each like the one before it
  bool searched = false;  ///< the gate also says, by the confidence alone, whether to look
};

/// Says a plan's facts: name, value.
using SayFact = std::function<void(const char* name, const std::string& value)>;
using SayLine = std::function<void(const std::string& line)>;

/// A kind of source: its options, its plan and how it is opened. Without state.
class SourceKind {
 public:
  virtual ~SourceKind() = default;
  virtual std::string name() const = 0;
  virtual GateFacts gate() const { return {}; }
  /// Columns of the per-token file, one for its weights together; empty: none.
  virtual std::string column() const { return {}; }

  virtual void fields(MemoryOptions& options, core::FieldList& f) const = 0;
  /// The options ask for it, beside what the model was trained with; and give it a share.
  virtual bool asked(const MemoryOptions& options, const PlanContext& context) const = 0;
  virtual bool share_given(const MemoryOptions& /*options*/) const { return false; }
  /// Throws Error{usage} for what contradicts itself or the model.
  virtual void plan(const MemoryOptions& options, const PlanContext& context,
                    MemoryPlan& plan) const = 0;
  /// The options that come to the plan.
  virtual void settle(const MemoryPlan& plan, MemoryOptions& options) const = 0;
  virtual bool any(const MemoryPlan& plan) const = 0;
  virtual std::unique_ptr<Source> open(const MemoryPlan& plan, const StreamShape& shape,
                                       const Grid& grid) const = 0;
  virtual void weights(MemoryPlan& /*plan*/, std::vector<PlanWeight>& /*weights*/) const {}
  /// The parts of the joint softmax that its entries are; pointers into the plan.
  virtual std::vector<JointPart*> joint(MemoryPlan& /*plan*/) const { return {}; }
  virtual std::vector<AxisFacts> axis_facts() const { return {}; }
  virtual void axes(MemoryPlan& /*plan*/, std::vector<PlanAxis>& /*axes*/) const {}
  /// For a figure's signature.
  virtual void sign(const MemoryPlan& plan, const SayFact& say) const = 0;
  /// What annotated texts call it.
  virtual std::vector<std::string> names(const MemoryPlan& plan) const = 0;
  /// What there is to say where a text with these fingerprints is scored.
  virtual void notes(const MemoryPlan& /*plan*/, const shard::Fingerprints& /*texts*/,
                     const char* /*what*/, const SayLine& /*say*/) const {}
  /// The plan without what is of these texts, where the source does not leave it out by itself.
  virtual void leave_out(MemoryPlan& /*plan*/, const shard::Fingerprints& /*texts*/) const {}

  /// Opens what the options name, once all is planned; see plan_memory().
  virtual void load(const MemoryOptions& /*options*/, const PlanContext& /*context*/,
                    MemoryPlan& /*plan*/) const {}
  /// Positions of a stream are remembered; and the most that are looked back at from a window.
  /// `streamed`: tokens of a window, where what it shows is not in it; else 0.
  virtual bool remembers(const MemoryPlan& /*plan*/) const { return false; }
  virtual std::int64_t reach(const MemoryPlan& /*plan*/, std::int64_t /*streamed*/) const {
    return 0;
  }
  /// Windows must come in the order of the text.
  virtual bool in_order(const MemoryPlan& /*plan*/) const { return false; }
  /// Models that read the same text beside the model.
  virtual std::vector<std::shared_ptr<const BesideModel>> beside(const MemoryPlan& /*plan*/) const {
    return {};
  }
  /// Streams are read token by token, Window::before too.
  virtual bool reads(const MemoryPlan& /*plan*/) const { return false; }
  /// Of tokens that were read, the last of a stream: whether those before them matter too.
  virtual bool wants_more(const MemoryPlan& /*plan*/,
                          std::span<const std::int64_t> /*read*/) const {
    return false;
  }
  /// Contexts can be cited.
  virtual bool cites(const MemoryPlan& /*plan*/) const { return false; }
};

/// All kinds, in the order of flags, signatures and mixtures.
const std::vector<const SourceKind*>& source_kinds();

}  // namespace infer
