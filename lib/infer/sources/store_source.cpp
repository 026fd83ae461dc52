#include "infer/sources/store_source.h"

#include "infer/sources/context_source.h"
#include "infer/sources/kind_of.h"
#include "infer/sources/plan_axes.h"
#include "infer/sources/ring_source.h"
#include "infer/sources/store_lookup.h"

namespace infer {
namespace {

// Leaves room for the default shares of other sources.
constexpr double kMostCalibratedShare = 0.35;

// The results of a batch, one for each nprobe.
struct LookupEntries : LookupResult {
  struct Result {
    std::vector<Neighbours> found;
    SearchCounts counts;  // of the first nprobe
  };
  std::shared_future<Result> coming;
  bool counted = false;

  std::optional<SearchCounts> counts() override {
    return counted ? std::optional(coming.get().counts) : std::nullopt;
  }
};

class StoreSource : public Source {
 public:
  StoreSource(
      const StorePlan& own, const MemoryPlan& plan, const StreamShape& shape, const Grid& grid)
      : plan_(own), gates_(plan.gates), streams_(shape.streams),
        own_(grid.values("datastore-temperature", own.temperature)) {
    const auto joint = temperatures_of(own.joint, plan, grid);
    joint_ = joint.values;
    axes_ = {grid.find("nprobe"), joint.axis, grid.find("datastore-temperature")};
    for (const double nprobe : grid.values("nprobe", static_cast<double>(own.nprobe)))
      nprobes_.push_back(static_cast<std::int64_t>(nprobe));
    for (double& divisor : joint_) divisor *= std::sqrt(static_cast<double>(shape.d_key));
  }

  std::unique_ptr<LookupResult> look_up(const Lookup& lookup) override {
    const Tensor allowed = allowed_by(lookup.confidence);
    auto found = std::make_unique<LookupEntries>();
    found->counted = gates_.has("datastore") || plan_.follow > 0;
    // If no thread can start, the search runs when its result is needed.
    const auto policy =
        lookup.background ? std::launch::async | std::launch::deferred : std::launch::deferred;
    found->coming = std::async(policy, [this, lookup, allowed] {
      if (lookup.background) at::init_num_threads();  // sets the usual number of threads
      LookupEntries::Result result;
      for (const std::int64_t nprobe : nprobes_) {
        SearchCounts counts;
        result.found.push_back(find(plan_, lookup, allowed, nprobe, counts));
        if (result.found.size() == 1) result.counts = counts;
      }
      return result;
    });
    return found;
  }

  SourceScores score(const RecalledRows& rows) override {
    SourceScores scores{axes_};
    std::vector<Tensor> all, positive, own;
    for (const auto& whole : static_cast<LookupEntries*>(rows.found)->coming.get().found) {
      const Neighbours here = whole.slice(rows.offset, rows.offset + rows.size());
      if (!scores.found) scores.found = std::make_shared<const Neighbours>(here);
      if (plan_.joined()) {
        const nn::Masses seen = store_masses(here, rows.targets, joint_);
        all.push_back(seen.all.unsqueeze(1)), positive.push_back(seen.positive.unsqueeze(1));
      }
      if (plan_.interpolated()) {
        const nn::Masses seen = store_masses(here, rows.targets, own_);
        own.push_back(alone(seen.positive, seen.all).unsqueeze(0));
      }
    }
    if (plan_.joined()) scores.joined = {{torch::stack(all), torch::stack(positive)}};
    if (plan_.interpolated()) scores.separate = {torch::stack(own)};
    if (plan_.interpolated() && gates_.any())
      scores.features = gate_features_of(*scores.found).view({1, 1, 1, rows.size(), 4});
    return scores;
  }

  VocabularyScores score_vocabulary(const VocabularyRows& rows) override {
    if (rows.found != nullptr) {
      const auto& found = static_cast<LookupEntries*>(rows.found)->coming.get().found;
      found_ = found[0].slice(rows.offset, rows.offset + rows.head.size(0));
    } else {
      found_ =
          find(plan_, rows.key, allowed_by(rows.confidence), pointers_, nprobes_[0], {}, searches_);
    }
    const auto masses = [&](double divisor) {
      return store_token_masses(found_, divisor, rows.vocabulary()).to(rows.head.options());
    };
    VocabularyScores scores;
    if (plan_.joined()) scores.masses = {masses(joint_[0])};
    if (plan_.interpolated()) scores.separate = {alone(masses(own_[0]))};
    if (plan_.interpolated() && gates_.any()) scores.features = gate_features_of(found_);
    return scores;
  }

  std::vector<StoreShare> entries(const RowToken& of, const RowWeights& weights) const override {
    const std::int64_t row = of.row;
    const auto number = [&](const Tensor& rows) { return rows[row].item<double>(); };
    const auto logits = [&, one = found_.slice(row, row + 1)](
                            double divisor) { return one.logits(divisor)[0].to(torch::kFloat64); };
    Tensor mass = torch::zeros_like(found_.scores[row], torch::kFloat64);
    if (plan_.joined())
      mass += number(weights.joint) * (logits(joint_[0]) - number(weights.log_z[0])).exp();
    if (plan_.interpolated())
      mass += number(weights.separate[0]) * logits(own_[0]).softmax(0).nan_to_num(0);
    const auto values = mass.accessor<double, 1>();
    const auto labels = found_.labels.accessor<std::int64_t, 2>()[row];
    const auto ids = found_.rows.accessor<std::int64_t, 2>()[row];
    const auto stores = found_.stores.accessor<std::int64_t, 2>()[row];
    std::vector<StoreShare> shares;
    for (std::int64_t i = 0; i < mass.size(0); ++i)
      if (labels[i] == of.token)
        shares.push_back({stores[i], ids[i], values[i] / std::exp(of.log_prob)});
    return shares;
  }

  Evidence evidence(const RowToken& of, const RowWeights& weights, std::int64_t most,
      std::int64_t context_tokens) const override {
    auto best = entries(of, weights);
    std::ranges::stable_sort(best, std::greater(), &StoreShare::share);
    Evidence evidence;
    for (const StoreShare& one : best) evidence.share += one.share;
    best.resize(std::min(best.size(), static_cast<std::size_t>(most)));
    for (const StoreShare& one : best) {
      const auto& store = (*plan_.opened)[static_cast<std::size_t>(one.store)];
      auto context = store.context(one.row, context_tokens);
      evidence.contexts.push_back(
          {store.name(), context.document, one.row, one.share, std::move(context.before)});
      if (context.name.empty()) continue;
      auto& cited = evidence.contexts.back();
      cited.name = context.name;
      if (store.manifest().whole()) cited.since_start = store.context(one.row, one.row).before;
    }
    return evidence;
  }

  std::vector<Tensor> shares(const Window* /*window*/, std::int64_t /*begin*/,
      const Tensor& targets, const Tensor& log_prob, const RowWeights& weights) const override {
    const std::int64_t rows = targets.size(0);
    const auto stores = static_cast<std::int64_t>(plan_.opened->size());
    const Tensor of = torch::zeros({stores, rows}, torch::kFloat64);
    auto sums = of.accessor<double, 2>();
    for (std::int64_t i = 0; i < rows; ++i)
      for (const auto& one :
          entries({i, targets[i].item<std::int64_t>(), log_prob[i].item<double>()}, weights))
        sums[one.store][i] += one.share;
    return of.unbind(0);
  }

  void read(std::int64_t row, std::span<const std::int64_t> tokens) override {
    if (plan_.follow == 0 || found_.size() == 0) return;
    pointers_.resize(static_cast<std::size_t>(streams_));
    pointers_[static_cast<std::size_t>(row)].advance(*plan_.opened, found_, row, tokens[0]);
  }

  void select(const Tensor& rows) override {
    streams_ = rows.size(0);
    if (plan_.follow == 0) return;
    if (!pointers_.empty()) pointers_ = selected(pointers_, rows);
    if (found_.size() > 0) found_ = found_.select(rows);
  }

  SearchCounts searches() const override { return searches_; }

  void join(const Source& other, std::int64_t streams, std::int64_t more) override {
    streams_ = streams + more;
    if (plan_.follow == 0) return;
    auto pointers = dynamic_cast<const StoreSource&>(other).pointers_;
    pointers.resize(static_cast<std::size_t>(more));
    pointers_.resize(static_cast<std::size_t>(streams));
    std::move(pointers.begin(), pointers.end(), std::back_inserter(pointers_));
    found_ = {};  // of the own streams only
  }

 private:
  // Returns (R) bool: the rows whose gate allows a search. Undefined: all.
  Tensor allowed_by(const Tensor& confidence) const {
    if (!gates_.skips()) return {};
    gates_.expect_fitted();
    return search_shares(gates_.gate, confidence.cpu()) >= gates_.threshold;
  }

  StorePlan plan_;
  GatePlan gates_;
  std::int64_t streams_;
  std::vector<double> joint_, own_;  // divisors of scores
  std::vector<std::int64_t> nprobes_;
  std::vector<std::size_t> axes_;
  Neighbours found_;                // of the last call of score_vocabulary()
  std::vector<Pointers> pointers_;  // pointers of each stream after found_, if rows are followed
  SearchCounts searches_;
};

class StoreKind : public WeightedKind<StoreOptions, StorePlan, StoreSource> {
 public:
  StoreKind()
      : WeightedKind({.name = "datastore",
            .column = "stores",
            .in_order = true,
            .cites = true,
            .gate = {.flag = "--datastore-lambda",
                .features = {"nearest", "spread", "agree", "distinct"},
                .searched = true},
            .borrows = {"combine", "joint-temperature", "tune-temperatures"}}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_datastores = f.group("Datastores");
    f("datastore", own(o).folders,
        "folder of a datastore of this model; may be repeated; see tessera-memories(7)");
    f("datastore-combine", own(o).combine,
        "joint: datastores join the model's softmax; interpolate: form a separate distribution; "
        "both; auto: as --combine",
        {"auto", "joint", "interpolate", "both", "released"});
    f("k", own(o).k, "nearest neighbours per query, over all datastores").between(1, 65536);
    f("nprobe", own(o).nprobe, "inverted lists probed per query (nprobe)").between(1, 1e6);
    f("rescore", own(o).rescore, "recompute the scores of the neighbours from the stored keys");
    f("min-pointers", own(o).follow,
        "RetoMaton: follow the pointers of the last neighbours instead of searching while at "
        "least N of them predicted the token; none: always search")
        .none_or(1, 65536);
    f("datastore-lambda", *own(o).lambda.target(),
        "interpolation weight of the datastores (0 to below 1), or gate");
    f("datastore-threshold", own(o).threshold,
        "search only if a gate that reads only the model's confidence gives the datastores at "
        "least this weight")
        .fraction();
    f("datastore-temperature", own(o).temperature,
        "temperature of the interpolated distribution; auto: sqrt(width of a key)")
        .auto_or(model::kLeastTemperature, 1e6);
    own(o).joint.fields(f, "datastore", "entries of datastores");
  }

  bool asked(const MemoryOptions& o, const PlanContext& context) const override {
    return own(o).any() || (context.loaded == nullptr && context.open.of<OpenStores>().opened);
  }
  bool share_given(const MemoryOptions& o) const override {
    return WeightedKind::share_given(o) || own(o).combine == "released";
  }
  void drop(MemoryOptions& o) const override {
    SourceKind::drop(o);
    auto& context = o.of<ContextOptions>();
    if (context.combine == "both") context.combine = ContextOptions().combine;
  }
  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    const StoreOptions& from = own(o);
    StorePlan& to = own(plan);
    check_temperature("datastore-temperature", from.temperature);
    to.combine = from.combine == "auto" ? o.of<ContextOptions>().combine : from.combine;
    if (to.combine == "released") plan.released_by = "--datastore-combine released";
    to.joint.take(from.joint);
    to.k = from.k, to.nprobe = from.nprobe, to.rescore = from.rescore, to.follow = from.follow;
    to.lambda = from.lambda.value("--datastore-lambda", context.open_share(0.25));
    to.temperature = from.temperature > 0
                         ? from.temperature
                         : std::sqrt(static_cast<double>(context.model.architecture->d_key()));
    plan.gates.threshold = from.threshold;
    plan_gate(o, context, plan);
    if (gated(plan) && to.combine != "interpolate")
      core::bad_usage(
          "--datastore-lambda gate: has no effect on joint datastores; add --datastore-combine "
          "interpolate");
    if (from.threshold > 0 && asked(o, context) && !gated(plan))
      core::bad_usage("--datastore-threshold: requires --datastore-lambda gate");
  }

  // Uses a single store as it was calibrated, unless an option or a tuned file says otherwise.
  static void use_calibration(const MemoryOptions& o, StorePlan& to) {
    const StoreOptions& from = own(o);
    if (!to.any() || to.opened->size() != 1 || !o.tuned_on.empty()) return;
    const auto& found = (*to.opened)[0].manifest().calibration;
    if (!found) return;
    if (from.temperature == 0) to.temperature = found->temperature;
    if (from.lambda.open()) to.lambda = std::min(found->share, kMostCalibratedShare);
    if (o.joint_temperature == 0 && from.joint.open() && to.combine != "released")
      to.joint.temperature = found->joint_temperature, to.joint.bias = found->joint_bias;
  }

  void load(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    const auto& folders = own(o).folders;
    OpenStores& open = context.open.of<OpenStores>();
    StorePlan& to = own(plan);
    if (open.opened == nullptr && !folders.empty()) {
      if (context.loaded == nullptr) core::bug("the stores of {} are not open", folders[0]);
      open.opened = open_stores(folders, *context.loaded);
    }
    // A request may leave the open datastores out.
    if (asked(o, context) || open.shared) to.opened = open.opened;
    if (to.any() && to.rescore) to.opened->expect_rescorable();
    if (to.any() && to.follow > 0) to.opened->expect_followable();
    use_calibration(o, to);
  }
  void share(const MemoryOptions& o, const model::Loaded& loaded,
      const std::shared_ptr<ranks::Group>& group, OpenMemories& open) const override {
    open.of<OpenStores>() = {share_stores(own(o).folders, loaded, group), true};
  }

  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    const StorePlan& from = own(plan);
    own(o).combine = from.combine, own(o).nprobe = from.nprobe;
    own(o).temperature = from.temperature;
    settle_weight(plan, o);
    if (from.joined()) from.joint.settle(own(o).joint);
  }

  SearchPlan search(const MemoryPlan& p) const override { return {own(p).opened, own(p).k}; }

  void weights(MemoryPlan& plan, std::vector<PlanWeight>& weights) const override {
    if (own(plan).interpolated()) WeightedKind::weights(plan, weights);
  }

  std::vector<JointPart*> joint(MemoryPlan& plan) const override {
    return own(plan).joined() ? std::vector{&own(plan).joint} : std::vector<JointPart*>{};
  }

  std::vector<AxisFacts> axis_facts() const override {
    std::vector<AxisFacts> all = {
        {"nprobe", "nprobes", "values of --nprobe to try, each with its own search [--nprobe]", 1,
            1e6, true},
        {"datastore-temperature", "datastore-temperatures",
            "temperatures of the interpolated distribution to try [1, and 1/80 to 4 times "
            "--datastore-temperature]",
            model::kLeastTemperature, kMostTuned}};
    for (auto& facts : joint_part_facts("datastore", "entries of datastores"))
      all.push_back(std::move(facts));
    return all;
  }
  void axes(MemoryPlan& plan, std::vector<PlanAxis>& axes) const override {
    StorePlan& stores = own(plan);
    if (stores.joined()) {
      axes.push_back(joint_temperature_axis(plan));
      add_joint_axes(plan, stores.joint, axes);
    }
    axes.push_back({"nprobe", &stores.nprobe});
    if (!stores.interpolated()) return;
    auto steps = steps_of(kStoreTemperatureSteps, stores.temperature);
    if (std::count(steps.begin(), steps.end(), 1) == 0)  // Khandelwal et al. 2020
      steps.insert(std::upper_bound(steps.begin(), steps.end(), 1), 1);
    axes.push_back(
        {"datastore-temperature", &stores.temperature, std::move(steps), stores.lambda > 0});
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    const StorePlan& stores = own(plan);
    say("stores", stores.opened->signature());
    say("k", fmt::format("{}", stores.k));
    say("nprobe", fmt::format("{}", stores.nprobe));
    say("rescore", stores.rescore ? "yes" : "no");
    if (stores.follow > 0) say("min-pointers", fmt::format("{}", stores.follow));
    say("stores-combine", stores.combine);
    if (!stores.interpolated()) return;
    say("stores-temperature", fmt::format("{}", stores.temperature));
    say("stores-lambda", gated(plan) ? "gate" : fmt::format("{}", stores.lambda));
  }

  std::vector<std::string> names(const MemoryPlan& plan) const override {
    const Stores& stores = *own(plan).opened;
    return core::generated(stores.size(), [&](std::size_t i) { return stores[i].name(); });
  }

  void notes(const MemoryPlan& plan, const shard::Fingerprints& texts, const char* what,
      const SayLine& say) const override {
    const Stores& stores = *own(plan).opened;
    if (stores.hold(texts))
      say(fmt::format("a datastore contains {}; its entries of this text are left out", what));
    if (const auto merged = stores.that_merged(texts); !merged.empty())
      say(fmt::format(
          "{}: --prune merged entries of this text with entries of other texts; the merged entries "
          "are used",
          fmt::join(merged, ", ")));
  }
};

}  // namespace

const SourceKind& store_kind() { return only<StoreKind>(); }

}  // namespace infer
