#include "model/adapter.h"

#include "core/file_text.h"
#include "model/checkpoint.h"

namespace model {
namespace {

constexpr std::size_t kConfigBytes = std::size_t{1} << 22;
constexpr std::string_view kBase = "base_model.model.";
constexpr std::string_view kWeight = ".weight";

std::string module_of(const std::string& tensor) {
  return tensor.substr(0, tensor.size() - kWeight.size());
}

std::string config_of(const std::string& folder) {
  const std::string path = folder + "/" + kAdapterConfigFile;
  if (!core::exists(path))
    core::fail(core::Code::no_input, "{}: not an adapter's folder: it has no {}{}", folder,
        kAdapterConfigFile,
        latest_checkpoint(folder)
            ? "; its training has not finished: give the folder as the model, without an adapter"
            : "");
  const std::string weights = folder + "/" + kAdapterWeightsFile;
  if (!core::exists(weights))
    core::fail(core::Code::no_input, "{}: has no {}{}", folder, kAdapterWeightsFile,
        core::exists(folder + "/adapter_model.bin")
            ? ", and adapter_model.bin is not read; save it with safe_serialization=True"
            : "; is the folder complete?");
  return core::read_file(path, kConfigBytes);
}

std::string shown(torch::IntArrayRef shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

// A matrix of the model's files, with the names that adapters use.
struct AdaptedMatrix {
  std::size_t weight;  // index in StoredWeights
  Piece piece;
  std::vector<std::int64_t> shape;  // (out, in)
  bool embedding, linear;
};

std::map<std::string, AdaptedMatrix> adapted_matrices(
    const Config& config, const StoredWeights& weights) {
  std::map<std::string, AdaptedMatrix> places;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto& name = weights.name(i);
    const auto& shape = weights.shape(i);
    if (!name.ends_with(kWeight) || name.find(".experts.") != name.npos) continue;  // peft has none
    const bool embedding = name.ends_with(".wte.weight"), position = name.ends_with(".wpe.weight");
    const bool head = name == "lm_head.weight", taps = name.ends_with(".convolution.weight");
    for (const auto& piece : pieces_of(config.family, config.options, name, shape[0])) {
      auto own = shape;
      own[0] = piece.rows;
      const bool linear = own.size() == 2 && !embedding && !position && !head && !taps;
      places.emplace(module_of(piece.tensor), AdaptedMatrix{i, piece, own, embedding, linear});
    }
  }
  return places;
}

// Returns the names of the embedding's and the head's modules.
std::pair<std::string, std::string> tied_modules(const Config& config) {
  const auto of = [&](const std::string& weight) {
    return module_of(pieces_of(config.family, config.options, weight, config.vocabulary)[0].tensor);
  };
  return {of(config.options.arch + ".wte.weight"), of("lm_head.weight")};
}

// The two parts of a tensor's name in an adapter, for example "model.layers.0.self_attn.q_proj" and
// ".lora_A.weight".
struct Named {
  std::string module, kind;
};

Named named(const std::string& tensor, const std::string& prefix) {
  if (!tensor.starts_with(prefix)) return {tensor, ""};
  const std::string rest = tensor.substr(prefix.size());
  for (const char* kind : {".lora_A.weight", ".lora_B.weight", ".lora_embedding_A",
           ".lora_embedding_B", ".base_layer.weight", ".weight"})
    if (rest.ends_with(kind))
      return {rest.substr(0, rest.size() - std::string_view(kind).size()), kind};
  return {rest, ""};
}

}  // namespace

torch::Tensor low_rank_term(const torch::Tensor& a, const torch::Tensor& b, double scale) {
  return b.matmul(a).mul_(scale);
}

Adapter::Adapter(const std::string& folder)
    : folder_(folder), rules_(config_of(folder), folder + "/" + kAdapterConfigFile),
      file_(folder + "/" + kAdapterWeightsFile), prefix_(kBase) {
  file_.verify();
}

Adapter::Adapter(const core::Json& rules, const std::string& file, std::string prefix)
    : folder_(file.substr(0, file.rfind('/'))), rules_(core::dump(rules), file), file_(file),
      prefix_(std::move(prefix)), alone_(false) {
  file_.verify();
}

bool Adapter::unties(const Config& config) const {
  if (!config.options.vocabulary.tied) return false;
  const auto tied = tied_modules(config);
  if (rules_.says_targets() && rules_.targets(tied.second, false)) return true;
  return std::any_of(file_.entries().begin(), file_.entries().end(), [&](const auto& entry) {
    const auto module = named(entry.first, prefix_).module;
    return module == tied.first || module == tied.second;
  });
}

// Returns the modules that modules_to_save selects.
std::set<std::string> Adapter::saved_modules(const std::vector<std::string>& modules) const {
  std::set<std::string> saved;
  for (const auto& end : rules_.saved()) {
    bool found = false;
    for (const auto& module : modules)
      for (auto size = module.size(); size != module.npos; size = module.rfind('.', size - 1)) {
        if (!std::string_view(module).substr(0, size).ends_with(end)) continue;
        saved.insert(module);
        found = true;
      }
    if (!found)
      core::bad_data(
          "{}: has no tensor of {}, which \"modules_to_save\" requires", file_.name(), end);
  }
  return saved;
}

// Completes the changes of an embedding and a head that are one matrix in the model.
void Adapter::complete_tied(Change& embedding, Change& head) const {
  // peft reads a tensor of the shared matrix into both.
  embedding.base = head.base = head.base.empty() ? embedding.base : head.base;
  if (!rules_.ties_terms() || !head.a.empty() || !head.b.empty()) return;
  head.a = embedding.a, head.b = embedding.b, head.embedding = true;
}

std::vector<std::vector<Adapter::Change>> Adapter::changes(
    const Config& config, const StoredWeights& weights) const {
  const auto places = adapted_matrices(config, weights);
  const auto refused = [&](const std::string& tensor, const std::string& why) {
    core::bad_data("{}: tensor {}: {}", file_.name(), tensor, why);
  };
  auto saved = saved_modules(core::keys_of(places));
  std::map<std::string, Change> changed;  // by module
  const auto change_of = [&](const std::string& module, const AdaptedMatrix& place) -> Change& {
    const auto found = changed.find(module);
    if (found != changed.end()) return found->second;
    const double factor = weights.factor(place.weight);
    return changed
        .emplace(module, Change{.piece = place.piece,
                             .embedding = place.embedding,
                             .rank = rules_.rank(module),
                             .scale = rules_.scale(module) * factor,
                             .factor = factor})
        .first->second;
  };
  const auto [embedding, head] = tied_modules(config);
  const auto is_tied = [&, &embedding = embedding, &head = head](const std::string& module) {
    return config.untied && (module == embedding || module == head);
  };
  if (config.untied) {
    const auto rank = change_of(embedding, places.at(embedding)).rank;
    auto& second = change_of(head, places.at(head));
    if (rules_.ties_terms()) second.rank = rank;
    if (rules_.ties_saved()) saved.insert({embedding, head});
  }
  for (const auto& [tensor, entry] : file_.entries()) {
    if (!alone_ && !tensor.starts_with(prefix_)) continue;
    const auto [module, kind] = named(tensor, prefix_);
    const auto found = places.find(module);
    if (found == places.end() || kind.empty())
      refused(tensor, "matches no matrix of the model; is the adapter for another model?");
    const auto& place = found->second;
    if (!c10::isFloatingType(entry.dtype)) refused(tensor, "is not floating point");
    auto& change = change_of(module, place);
    auto expected = place.piece.shape_there(place.shape);
    if (kind == ".lora_A.weight" || kind == ".lora_B.weight") {
      if (place.embedding || place.shape.size() != 2) refused(tensor, "matches no matrix");
      const bool first = kind == ".lora_A.weight";
      (first ? change.a : change.b) = tensor;
      expected = first ? std::vector{change.rank, place.shape[1]}
                       : std::vector{place.shape[0], change.rank};
    } else if (kind.starts_with(".lora_embedding")) {
      if (!place.embedding || place.piece.layout != Layout::as_is)
        refused(tensor, "matches no embedding that an adapter supports");
      const bool first = kind == ".lora_embedding_A";
      (first ? change.a : change.b) = tensor;
      expected = first ? std::vector{change.rank, place.shape[0]}
                       : std::vector{place.shape[1], change.rank};
    } else {
      (saved.count(module) > 0 ? change.whole : change.base) = tensor;
    }
    if (entry.shape != expected)
      refused(
          tensor, fmt::format("has shape {}, but the model and {} require {}", shown(entry.shape),
                      alone_ ? kAdapterConfigFile : "the run", shown(expected)));
  }
  if (config.untied) complete_tied(changed.at(embedding), changed.at(head));
  std::vector<std::vector<Change>> all(weights.size());
  for (const auto& [module, place] : places) {
    const auto found = changed.find(module);
    const bool here = found != changed.end();
    if (saved.count(module) > 0 && (!here || found->second.whole.empty()))
      core::bad_data("{}: has no tensor {}{}.weight, which \"modules_to_save\" requires",
          file_.name(), prefix_, module);
    const bool has = here && !(found->second.a.empty() && found->second.b.empty());
    if (has && (found->second.a.empty() || found->second.b.empty()))
      core::bad_data("{}: {} has only one of lora_A and lora_B", file_.name(), module);
    const bool chosen =
        (rules_.ties_terms() && is_tied(module)) || rules_.targets(module, place.linear);
    if (rules_.says_targets() && place.shape.size() == 2 && chosen != has)
      core::bad_data("{}: {} lora_A and lora_B of {}, which \"target_modules\" {}", file_.name(),
          has ? "has" : "has no", module, has ? "does not choose" : "chooses");
    if (here) all[place.weight].push_back(found->second);
  }
  return all;
}

torch::Tensor Adapter::read(const std::string& tensor, const FaultFound& found) const {
  auto values = file_.read(tensor).to(torch::kFloat32);
  if (!torch::isfinite(values).all().item<bool>())
    found(fmt::format("{}: tensor {} has a value that is not finite", file_.name(), tensor));
  return values;
}

void Adapter::apply(const std::vector<Change>& changes, const torch::Tensor& weight,
    const FaultFound& found) const {
  const torch::NoGradGuard no_grad;
  for (const auto& change : changes) {
    const auto& piece = change.piece;
    const auto rows = weight.narrow(0, piece.begin, piece.rows);
    if (const auto& whole = change.whole.empty() ? change.base : change.whole; !whole.empty())
      rows.copy_(piece.here(read(whole, found)) * change.factor);
    if (change.a.empty()) continue;
    auto term = low_rank_term(read(change.a, found), read(change.b, found), change.scale);
    if (change.embedding) term = term.t();
    // Both are (out, in); only heads may have another order.
    rows.add_(piece.layout == Layout::by_head ? piece.here(term) : term);
  }
}

void save_adapter(
    const std::string& folder, const AdapterFacts& facts, const std::vector<AdapterTerm>& terms) {
  core::make_folder(folder);
  const core::OrderedJson config = {{"peft_type", "LORA"}, {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path", facts.base}, {"r", facts.rank}, {"lora_alpha", facts.alpha},
      {"lora_dropout", 0.0}, {"target_modules", facts.targets},
      {"fan_in_fan_out", facts.transposed}, {"bias", "none"}, {"use_rslora", false},
      {"modules_to_save", nullptr}, {"init_lora_weights", true}, {"inference_mode", true}};
  core::write_file(folder + "/" + kAdapterConfigFile, core::dump_pretty(config) + "\n");
  NamedTensors tensors;
  for (const auto& term : terms) {
    const std::string name = std::string(kBase) + term.module;
    tensors.emplace_back(name + ".lora_A.weight", term.a.detach());
    tensors.emplace_back(name + ".lora_B.weight", term.b.detach());
  }
  core::Output weights(folder + "/" + kAdapterWeightsFile);
  write_safetensors(weights, tensors);
  weights.commit();
}

void adapter_field(core::FieldList& f, std::string& adapter) {
  f("adapter", adapter, "folder of a LoRA adapter, merged into the weights while they are loaded");
}

std::string adapter_base(const std::string& folder) {
  try {
    const auto config = core::read_json(folder + "/" + kAdapterConfigFile, kConfigBytes);
    return config.is_object() ? config.value("base_model_name_or_path", "") : "";
  } catch (const std::exception&) { return {}; }
}

}  // namespace model
