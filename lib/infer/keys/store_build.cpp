#include "infer/keys/store_build.h"

#include <chrono>

#include "model/adapter.h"
#include "model/checkpoint.h"
#include "nn/memory/joint_loss.h"

namespace infer {
namespace {

constexpr std::int64_t kNeighbours = 1024, kProbes = 32;  // defaults of search
const std::vector<double> kJointSteps = {0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 8, 16},
                          kOwnSteps = {0.0125, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.5, 2, 4},
                          kShares = {kLeastWorth, 0.05, 0.1, 0.2, 0.3, 0.5};

double to_four(double value) { return std::stod(fmt::format("{:.4g}", value)); }

double loss_of(const Tensor& log_prob) { return -log_prob.mean().item<double>(); }

// Returns the best weight of `own` against `model`, log p (R) each, and its loss. The loss is
// convex in the weight.
std::pair<double, double> best_weight(const Tensor& model, const Tensor& own) {
  const Tensor there = torch::where(own.isnan(), model, own);
  const auto loss_at = [&](double weight) {
    return loss_of(torch::logaddexp(model + std::log1p(-weight), there + std::log(weight)));
  };
  double low = kLeastWorth, high = kMostWorth;
  while (high - low > 1e-4) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (loss_at(a) < loss_at(b) ? high : low) = loss_at(a) < loss_at(b) ? b : a;
  }
  return {to_four((low + high) / 2), loss_at((low + high) / 2)};
}

// Returns the bias that gives entries this average share of the softmax.
double bias_for(double share, const Tensor& all, const Tensor& log_z) {
  const Tensor seen = all > nn::kUnseen / 2;
  if (!seen.any().item<bool>()) return 0;
  const Tensor odds = (all - log_z).masked_select(seen);
  double low = -odds.max().item<double>() - 40, high = -odds.min().item<double>() + 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (torch::sigmoid(odds + middle).mean().item<double>() < share ? low : high) = middle;
  }
  return to_four((low + high) / 2);
}

Tensor positions_of(const Tensor& rows, std::span<const std::int64_t> places) {
  if (places.empty()) return rows;
  const Tensor all = torch::from_blob(
      const_cast<std::int64_t*>(places.data()), {std::ssize(places)}, torch::kInt64);
  return all.index_select(0, rows.flatten().clamp_min(0)).view(rows.sizes());
}

// Removes neighbours near the queries, which have these positions (R).
Neighbours without_near(
    const Neighbours& found, const Tensor& positions, std::span<const std::int64_t> places) {
  const Tensor far =
      (positions_of(found.rows, places) - positions.unsqueeze(1)).abs() > kHiddenAround;
  const Tensor shown = far.logical_and(found.rows >= 0);
  const auto hide = [&](const Tensor& of, const torch::Scalar& none) {
    return of.masked_fill(~shown, none);
  };
  const Neighbours left{hide(found.scores, -std::numeric_limits<float>::infinity()),
      hide(found.labels, -1), hide(found.rows, -1), hide(found.stores, -1), found.log_weights};
  return left.best(kNeighbours);
}

constexpr const char* kState = "carried";

// Writes the State to disk before the rows that depend on it count. Older States are removed
// afterwards. `entries` is the number of entries walked.
void commit(store::Builder& builder, const EntryWalk& walk, const std::string& folder,
    std::uint64_t entries) {
  core::Json place = entries;
  if (walk.carried()) {
    model::Checkpoint checkpoint;
    checkpoint.put_state(kState, walk.state());
    model::save_checkpoint(folder, static_cast<std::int64_t>(entries), checkpoint);
  }
  builder.commit(std::move(place));
  if (walk.carried()) model::remove_checkpoints(folder, static_cast<std::int64_t>(entries));
}

void add(store::Builder& builder, const torch::Tensor& keys, const torch::Tensor& labels,
    std::span<const std::int64_t> places) {
  builder.add({keys.const_data_ptr<float>(), static_cast<std::size_t>(keys.numel())},
      {labels.const_data_ptr<std::int32_t>(), static_cast<std::size_t>(labels.size(0))}, places);
}

// Adds the entries of a block whose label has a model probability of at most `most_known`. `first`
// is the number of the block's first entry.
void add_unknown(
    store::Builder& builder, const EntryBlock& block, std::uint64_t first, double most_known) {
  const torch::Tensor rows =
      (block.log_probs.to(torch::kFloat64) <= std::log(most_known)).nonzero().squeeze(1);
  const torch::Tensor places = rows + static_cast<std::int64_t>(first);
  add(builder, block.keys.index_select(0, rows), block.labels.index_select(0, rows),
      {places.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(places.numel())});
}

// Returns for store.json what the keys depend on besides model and data.
core::Json key_options(const StoreBuildOptions& options, const WindowPlan& windows) {
  core::Json json = to_json(windows);
  json["precision"] = options.compute.precision;
  if (const auto reach = options.reach.signature(); !reach.empty()) json["reach"] = reach;
  if (options.skip_known < 1) json["skip_known"] = options.skip_known;
  return json;
}

store::Plan plan_of(const StoreBuildOptions& options, const model::Loaded& loaded,
    const shard::Dataset& data, const WindowPlan& windows) {
  store::Plan plan;
  plan.model = loaded.fingerprint.hex();
  plan.model_name = loaded.folder;
  plan.tokenizer = model::tokenizer_fingerprint(loaded.tokenizer);
  plan.width = static_cast<std::uint64_t>(loaded.model->architecture->d_key());
  plan.vocabulary = static_cast<std::uint64_t>(loaded.model->vocabulary);
  // Keys of a model without training memory are close as points (Khandelwal et al. 2020). Keys of a
  // model trained with memory were learned by inner products (Zhong et al. 2022).
  const bool plain = !nn::MemoryRule::parse(loaded.facts.memory).any();
  plan.metric = options.metric != "auto" ? store::metric_from(options.metric, "--metric")
                : plain                  ? store::Metric::l2
                                         : store::Metric::ip;
  plan.index = options.index;
  plan.data = data.fingerprint().hex();
  plan.data_name = data.name();
  // A pair is one document of the store and two of the shard.
  const std::uint64_t each = windows.pairs ? 2 : 1;
  for (const auto& file : data.files())
    plan.shards.push_back({file.trailer().fingerprint.hex(), 0, file.content().documents / each});
  plan.windows = key_options(options, windows);
  plan.leaves_out = options.skip_known < 1;
  plan.reduction = store::parse_reduction(options.keys, options.prune);
  plan.key_scale = options.key_scale > 0 ? options.key_scale : 1;
  if (!store::is_key_scale(plan.key_scale))
    core::bad_usage(
        "--key-scale {}: takes a power of 2, 1, 0.5, 0.25 and so on to 2^-100", plan.key_scale);
  return plan;
}

}  // namespace

store::Calibration calibrate(const CalibrationPiece& piece, double root_width, double unit) {
  store::Calibration best;
  best.tokens = static_cast<std::uint64_t>(piece.labels.size(0));
  double own_loss = HUGE_VAL, joint_loss = HUGE_VAL;
  for (const double step : kOwnSteps) {
    const double divisors[] = {to_four(step * root_width)};
    const nn::Masses seen = store_masses(piece.found, piece.labels, divisors);
    const Tensor own = torch::where(seen.all > nn::kUnseen / 2, seen.positive - seen.all, NAN)[0];
    const auto [share, loss] = best_weight(piece.log_prob, own);
    if (loss < own_loss) own_loss = loss, best.temperature = divisors[0], best.share = share;
  }
  for (const double step : kJointSteps) {
    const double temperature = to_four(step * unit), divisors[] = {temperature * root_width};
    const nn::Masses seen = store_masses(piece.found, piece.labels, divisors);
    const Tensor all = seen.all[0], positive = seen.positive[0];
    std::vector<double> biases;
    for (const double share : kShares) biases.push_back(bias_for(share, all, piece.log_z));
    // Also tries bias 0 if its share is within the range of kShares.
    if (biases.front() <= 0 && 0 <= biases.back()) biases.push_back(0);
    for (const double bias : biases) {
      const double loss =
          loss_of(nn::join({piece.log_prob, piece.log_z, all + bias, positive + bias}));
      if (loss < joint_loss)
        joint_loss = loss, best.joint_temperature = temperature, best.joint_bias = bias;
    }
  }
  return best;
}

std::optional<CalibrationPiece> calibration_piece(const Stores& store, std::int64_t first_row,
    std::span<const std::int64_t> places, const MakeWalk& make_walk) {
  if (store[0].manifest().rows < kLeastCalibrated) return std::nullopt;
  std::vector<EntryRange> ranges;
  for (std::int64_t i = 0; i < kPieces; ++i)
    if (const auto range = make_walk()->range_of({i, kPieces}); range.size() > 0)
      ranges.push_back(range);
  if (ranges.empty()) return std::nullopt;
  const auto each = static_cast<std::uint64_t>(kPieceTokens) / ranges.size();
  std::vector<Tensor> labels, keys, log_prob, log_z, positions;
  for (const EntryRange& range : ranges) {
    const auto walk = make_walk();
    walk->ask_log_probs();
    if (range.begin > 0) walk->resume(range.begin, {});
    std::uint64_t at = range.begin;
    const std::uint64_t end = range.begin + std::min(each, range.size());
    while (at < end) {
      auto block = walk->next();
      if (!block) break;
      block->arrive();
      const auto n = std::min(block->labels.size(0), static_cast<std::int64_t>(end - at));
      labels.push_back(block->labels.slice(0, 0, n).to(torch::kInt64));
      keys.push_back(block->keys.slice(0, 0, n));
      log_prob.push_back(block->log_probs.slice(0, 0, n).to(torch::kFloat64));
      log_z.push_back(block->log_z.slice(0, 0, n).to(torch::kFloat64));
      const auto first = static_cast<std::int64_t>(at) + (places.empty() ? first_row : 0);
      positions.push_back(torch::arange(first, first + n));
      at += static_cast<std::uint64_t>(block->labels.size(0));
    }
  }
  CalibrationPiece piece;
  piece.labels = torch::cat(labels);
  piece.log_prob = torch::cat(log_prob), piece.log_z = torch::cat(log_z);
  piece.found = without_near(store.search(torch::cat(keys), 2 * kNeighbours, kProbes, false),
      torch::cat(positions), places);
  return piece;
}

bool fill_store(store::Builder& builder, EntryWalk& walk, const EntryRange& range,
    const std::string& folder, torch::Device device, const FillCallbacks& watch,
    double most_known) {
  using Clock = std::chrono::steady_clock;
  const bool some = most_known < 1;
  if (some) walk.ask_log_probs();
  std::uint64_t entries = builder.place().is_null() ? 0 : builder.place().get<std::uint64_t>();
  std::uint64_t committed = entries;
  nn::State state;
  if (entries > 0 && walk.carried()) {
    const std::string path = folder + "/step-" + std::to_string(entries);
    state = model::load_checkpoint(path).get_state(kState, device);
  }
  if (range.begin + entries > 0) walk.resume(range.begin + entries, std::move(state));
  auto last = Clock::now();
  bool stopped = false;
  std::uint64_t walked = entries;
  std::optional<EntryBlock> coming;
  const auto arrive = [&] {
    if (!coming) return;
    coming->arrive();
    if (some) add_unknown(builder, *coming, entries, most_known);
    else add(builder, coming->keys, coming->labels, {});
    entries += static_cast<std::uint64_t>(coming->labels.size(0));
    coming.reset();
    if (watch.progress) watch.progress(entries);
  };
  while (!stopped && walked < range.size()) {
    auto block = walk.next();
    if (!block) break;
    walked += static_cast<std::uint64_t>(block->labels.size(0));
    arrive();  // while a device computes this block
    coming = std::move(block);
    if (device.is_cpu()) arrive();
    stopped = watch.stop && watch.stop();
    if (std::chrono::duration<double>(Clock::now() - last).count() > watch.commit_every_s) {
      arrive();  // the walk's State follows that block
      commit(builder, walk, folder, entries);
      committed = entries;
      last = Clock::now();
    }
  }
  arrive();
  if (entries > committed) commit(builder, walk, folder, entries);
  return !stopped;
}

void remove_states(const std::string& folder) {
  model::remove_checkpoints(folder);
  model::remove_leftovers(folder);
}

void StoreBuildOptions::fields(core::FieldList& f) {
  f("model", model, "folder of the model that computes the keys [required]").short_name = 'm';
  model::adapter_field(f, adapter);
  f("index", index,
      "exact, or a factory string of FAISS, such as IVF1024,PQ64x4fs [chosen by the number of "
      "rows and the recall]");
  f("metric", metric,
      "similarity of keys: inner product, or squared L2 distance; auto: with --append the store's, "
      "else l2 if the model was trained without memory, else ip",
      {"auto", "ip", "l2"});
  f("append", append, "append to this store");
  f("keys", keys,
      "stored keys: all: all dimensions; pca:D: the first D principal components; none: only the "
      "codes of the index");
  f("key-scale", key_scale,
      "multiply stored keys by this power of 2, for keys beyond the range of float16; scores do "
      "not change; auto: 1, with --append the store's")
      .auto_or_above(0, 1);
  f("prune", prune,
      "merge, merge:K: merge each entry with those of its K nearest entries that have the same "
      "label");
  f("skip-known", skip_known,
      "skip positions whose token has a higher probability under the model alone [1: skip none]")
      .above(0, 1);
  f("calibrate", calibrate,
      "find the best temperature and interpolation weight of the store on a held-out piece of "
      "the text");
  windows.fields(f);
  reach.fields(f);
  const auto in_parts = f.group("Parts");
  f("part", part,
      "I/N: build the store of the I-th of N parts of the text; launcher: I/N of this task of "
      "srun or a job array");
}

std::string StoreBuildOptions::folder(const std::string& output) const {
  core::part(part);  // throws if it is invalid
  if (core::is_part(part) && !append.empty())
    core::bad_usage("--part: builds a new store; leave --append out");
  if (core::is_part(part) && skip_known < 1)
    core::bad_usage("--skip-known: cannot be combined with --part");
  if (store::parse_reduction(keys, prune).any() && core::is_part(part))
    core::bad_usage("--keys, --prune: cannot be combined with --part; give them to store merge");
  if (store::parse_reduction(keys, prune).drop_keys && !append.empty())
    core::bad_usage("--append: cannot be combined with --keys none");
  if (append.empty() == output.empty())
    core::bad_usage("-o STORE or --append STORE is missing; see --help");
  if (model.empty()) core::bad_usage("-m MODEL is missing; give the model that computes the keys");
  return append.empty() ? output : append;
}

StoreBuild::StoreBuild(const StoreBuildOptions& options, const std::vector<std::string>& files,
    const std::string& folder)
    : folder_(folder), device_(nn::device(options.compute.device)),
      loaded_(model::load(
          options.model, device_, nn::dtype(options.compute.precision), options.adapter)),
      data_(files) {
  options.reach.apply({loaded_.model.get()});
  shard::expect_kind(data_.header(), {shard::Kind::tokens, shard::Kind::pairs}, data_.name());
  if (data_.header().kind == shard::Kind::pairs) options.windows.refuse_for_pairs();
  model::check_tokenizer(loaded_, data_.header(), data_.name());
  windows_ = plan_windows(options.windows, *loaded_.model, loaded_.facts, data_);
  const WindowPlan& windows = windows_;
  window_note_ = long_window_note(windows, loaded_.folder);
  store::Plan plan = plan_of(options, loaded_, data_, windows);
  if (!windows.pairs) plan.names = data_.documents().names;
  walk_ = make_walk(*loaded_.model, data_, windows, device_);
  const core::Part part = core::part(options.part);
  range_ = walk_->range_of(part);
  if (core::is_part(options.part))
    plan.part = {static_cast<std::uint64_t>(part.index + 1), static_cast<std::uint64_t>(part.count),
        range_.begin, range_.end};
  const bool append = !options.append.empty();
  if (append && options.metric == "auto") plan.metric = store::read_manifest(folder).metric;
  if (append && options.key_scale == 0) plan.key_scale = store::read_manifest(folder).key_scale;
  store::expect_possible(plan, range_.size());  // refuse now rather than after the rows
  builder_ = std::make_unique<store::Builder>(folder, plan, append);
  most_known_ = options.skip_known;
  chooses_index_ = plan.index.empty() && !append;
  calibrates_ = options.calibrate && part.whole() && !core::is_part(options.part);
  appends_ = append;
}

// If data are added to a store that leaves positions out, the positions of its rows among all texts
// are unknown. The store then keeps its calibration.
void StoreBuild::calibrate(store::Manifest& manifest, const store::ProgressCallback& watch) const {
  if (!calibrates_ || (appends_ && !manifest.whole()) || manifest.sources.empty()) return;
  if (watch) watch("calibrating", 0, kPieceTokens);
  auto opened = std::make_unique<store::Datastore>(folder_, manifest);
  const auto places = opened->places();
  const auto stores = store_alone(std::move(opened), loaded_);
  WindowPlan windows = windows_;
  if (!windows.carried)  // small batches: few of their tokens are taken
    windows.batch_tokens =
        std::min(windows.batch_tokens, std::max(windows.window, kPieceTokens / kPieces));
  const auto piece = calibration_piece(*stores,
      static_cast<std::int64_t>(manifest.rows - manifest.sources.back().rows), places,
      [&] { return make_walk(*loaded_.model, data_, windows, device_); });
  if (!piece) return;
  manifest.calibration =
      infer::calibrate(*piece, std::sqrt(static_cast<double>(loaded_.model->architecture->d_key())),
          model::test_temperature(loaded_.facts));
}

bool StoreBuild::fill(const FillCallbacks& watch) {
  return complete() || fill_store(*builder_, *walk_, range_, folder_, device_, watch, most_known_);
}

store::Manifest StoreBuild::finish(const store::ProgressCallback& watch) {
  store::Manifest manifest;
  if (!complete()) {
    manifest = builder_->finish(range_.documents(walk_->first_of_documents()), watch,
        [&](store::Manifest& made) { calibrate(made, watch); });
    changed_ = true;
  } else if (manifest = store::read_manifest(folder_); !manifest.calibration) {
    calibrate(manifest, watch);
    changed_ = manifest.calibration.has_value();
    if (changed_) store::write_manifest(folder_, manifest);
  }
  remove_states(folder_);
  return manifest;
}

std::string StoreBuild::summary(const store::Manifest& manifest) const {
  if (!changed_) return folder_ + " already holds these rows; nothing to do";
  auto text = fmt::format("{}: {} rows, index {}{}", folder_, manifest.rows, manifest.index,
      chooses_index_ ? ", chosen by the number of rows and the recall" : "");
  if (const auto& found = manifest.calibration)
    text += fmt::format(
        "; calibrated on {} tokens: interpolation with temperature {} and weight {}; joint "
        "softmax with temperature {} and bias {}",
        found->tokens, found->temperature, found->share, found->joint_temperature,
        found->joint_bias);
  return text;
}

}  // namespace infer
